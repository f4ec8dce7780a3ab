"""The answer of an import: what is filled in while it goes on, and when it is a refusal."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.model.documents.sources import ImportAnswer
from fairlane.model.errors import TryLater
from fairlane.model.names import SCHEMA


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
        "groups": [],
        "notes": list(notes),
    }


def refuse_deferred(answer: ImportAnswer) -> None:
    """An import that comes to nothing because the queue is full is refused for now."""
    if answer["deferred"] and not (answer["created"] or answer["changed"]):
        hint = "Nothing was imported: come later, or raise backpressure.hard."
        raise TryLater(f"deferred: {answer['deferred'][0]['reason']}", hint, "deferred")
