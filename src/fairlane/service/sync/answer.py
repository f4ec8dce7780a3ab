"""The answer of an import: what is filled in while it goes on, and when it is a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlane.intake.sources.base import LeftOut
from fairlane.model.documents.sources import ImportAnswer, SkippedDocument
from fairlane.model.errors import FairlaneError, TryLater, listed
from fairlane.model.names import SCHEMA
from fairlane.model.task import Task
from fairlane.policy.policy import Policy

#: Most names in one note.
NAMED_MAX = 10


def empty(source: str, path: str, notes: Iterable[str]) -> ImportAnswer:
    """Nothing came of it yet."""
    return {
        "schema": SCHEMA,
        "source": source,
        "path": path,
        "dry_run": False,
        "import": None,
        "created": [],
        "changed": [],
        "unchanged": [],
        "canceled": [],
        "held": [],
        "parked": [],
        "skipped": [],
        "conflicts": [],
        "deferred": [],
        "restarted": [],
        "groups": [],
        "notes": list(notes),
    }


def note_unknown_agents(answer: ImportAnswer, words: Mapping[str, str]) -> None:
    """Which tasks wait because nobody here knows their agent."""
    tasks: dict[str, list[str]] = {}
    for task, word in words.items():
        tasks.setdefault(word, []).append(task)
    for word, names in tasks.items():
        answer["notes"].append(f"{listed(names, NAMED_MAX)}: {word}")


def note_direct(answer: ImportAnswer, policy: Policy, dry_run: bool) -> None:
    """A whole list of work at once may be more than people want, and it costs."""
    if answer["created"] and policy.capacity.mode == "direct":
        starts = "would start" if dry_run else "starts"
        answer["notes"].append(
            f"In direct mode what is ready {starts} at once, unless paused: `fairlane pause`."
        )


def why_not(error: FairlaneError) -> str:
    """Why an item does not come in, with the option that brings it in if there is one."""
    forced = error.error_code == "foreign_prefix"
    return f"{error.message}; --force imports it" if forced else error.message


def not_ours(task: Task, source: str) -> str:
    """Why a task with the name of an item is not touched."""
    if task.meta.get("source") == source:
        return "it was imported with another PATH; give that one"
    return f"there is a task {task.id} that did not come from here"


def skipped(item: LeftOut) -> SkippedDocument:
    """An item that is left out; a broken one is marked."""
    row: SkippedDocument = {"id": item.id, "reason": item.reason, "where": item.where}
    return {**row, "broken": True} if item.bad else row


def refuse_deferred(answer: ImportAnswer) -> None:
    """An import that comes to nothing because the queue is full is refused for now."""
    done = answer["created"] or answer["changed"] or answer["restarted"]
    if answer["deferred"] and not done:
        hint = "Nothing was imported. Try again later, or raise backpressure.hard."
        raise TryLater(f"deferred: {answer['deferred'][0]['reason']}", hint, "deferred")


def note_changed(answer: ImportAnswer, task: str, fields: list[str]) -> None:
    """A task has other values than before; one task, one row."""
    rows = answer["changed"]
    if rows and rows[-1]["id"] == task:
        rows[-1]["fields"] += fields
    else:
        rows.append({"id": task, "fields": fields})
