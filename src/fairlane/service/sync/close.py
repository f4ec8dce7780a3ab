"""Items that are over, imports that are undone: how their tasks end."""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress

from fairlane.engine.context import Context
from fairlane.engine.task_changes import TaskChanges
from fairlane.intake.sources.base import Found, LeftOut, Standing
from fairlane.model.documents.sources import ReasonDocument, UndoAnswer
from fairlane.model.errors import NotFound, Refused
from fairlane.model.event import Happening
from fairlane.model.names import SCHEMA
from fairlane.model.project import Pause
from fairlane.model.record import changed
from fairlane.model.task import Task
from fairlane.service.sync.mapping import Entry, Import, entries, remember, untouched
from fairlane.service.tasks import RollBack
from fairlane.store.base import Writing

CLOSED_IN, GONE_FROM = "closed in", "gone from"


def over(content: Found, entries: Mapping[str, Entry]) -> dict[str, str]:
    """The items with a task that are over, each with the words that say how.

    A broken record may be any of those that are missing: then nothing counts as gone.
    """
    closed = {item.id for item in content.items if item.standing is Standing.CLOSED}
    ended = {name: CLOSED_IN for name in entries if name in closed}
    if not _nameless(content, entries):
        ended |= dict.fromkeys(_missing(content, entries), GONE_FROM)
    return ended


def in_doubt(content: Found, entries: Mapping[str, Entry]) -> dict[str, str]:
    """The items with a task that are gone, unless they are broken records; each with the first."""
    broken = _nameless(content, entries)
    first = broken[0].where or broken[0].id if broken else ""
    return dict.fromkeys(_missing(content, entries), first) if broken else {}


def _missing(content: Found, entries: Mapping[str, Entry]) -> list[str]:
    """The items with a task of which the source says nothing, not even that they are left out."""
    named = {item.id for item in content.items} | {skipped.id for skipped in content.left_out}
    return [name for name in entries if name not in named]


def _nameless(content: Found, entries: Mapping[str, Entry]) -> list[LeftOut]:
    """The broken records that may be any item."""
    known = entries.keys() | {item.id for item in content.items}
    return [
        skipped
        for skipped in content.left_out
        if skipped.bad and not skipped.sure and skipped.id not in known
    ]


def let_go(changes: TaskChanges, task: Task, ours: Container[str]) -> None:
    """What its source calls over keeps no other item waiting, nor takes it along when it ends."""
    for other in changes.tx.tasks(changes.tx.dependents(task.id)).values():
        if other.id in ours and untouched(other):
            needs = tuple(need for need in other.needs if need != task.id)
            changes.tx.save([changes.settle(changed(other, needs=needs))], content=True)


def cancel(changes: TaskChanges, task: Task, reason: str) -> None:
    """A task that has not started ends for this reason."""
    changes.happen(task, Happening.CANCEL, detail=reason)
    if task.paused:
        changes.tx.drop(Pause, f"task:{task.id}")


def undo(context: Context, number: int | None = None, dry_run: bool = False) -> UndoAnswer:
    """Cancel what an import created and what has not started; by default the last one's."""
    with suppress(RollBack), context.store.write() as tx:
        document = _undo(context, tx, number)
        if dry_run:
            document["dry_run"] = True
            raise RollBack
    return document


def _undo(context: Context, tx: Writing, wanted: int | None) -> UndoAnswer:
    number, record = _find(tx, wanted)
    policy = context.policy_for_reading(tx)  # a broken file must not keep work in the queue
    changes = TaskChanges(tx, policy, context.now(), context.actor)
    known = entries(tx, record["key"])
    tasks = tx.tasks(record["items"].values())
    canceled: list[ReasonDocument] = []
    left: list[ReasonDocument] = []
    reason = f"import {number} undone"
    for item, name in record["items"].items():
        task = tasks[name]
        if not untouched(task):
            left.append({"id": name, "reason": _why(task)})
            continue
        cancel(changes, task, reason)
        canceled.append({"id": name, "reason": reason})
        known[item]["away"] = "undone"
    changes.note(
        "import_undone",
        number=number,
        source=record["source"],
        canceled=len(canceled),
        left=len(left),
    )
    changes.close()
    remember(tx, record["key"], known)
    record["undone"] = True
    tx.put_value(f"import:{number}", record)
    return {
        "schema": SCHEMA,
        "import": number,
        "source": record["source"],
        "path": record["path"],
        "dry_run": False,
        "canceled": canceled,
        "left": left,
    }


def _find(tx: Writing, wanted: int | None) -> tuple[int, Import]:
    """The import of that number; one that was undone is refused."""
    last: int | None = tx.value("import")
    number = last if wanted is None else wanted
    record: Import | None = None if number is None else tx.value(f"import:{number}")
    if number is None or record is None:
        message = "nothing was imported" if number is None else f"there is no import {number}"
        hint = f"The last one is {last}." if last else "See fairlane import --help."
        raise NotFound(message, hint, code="unknown_import")
    if record.get("undone"):
        hint = "Name another one by its number: fairlane undo N."
        raise Refused(f"import {number} was undone already", hint, code="undone")
    return number, record


def _why(task: Task) -> str:
    if task.attempts and not task.status.final:
        return f"it has started (it is {task.status})"
    return f"it is {task.status}"
