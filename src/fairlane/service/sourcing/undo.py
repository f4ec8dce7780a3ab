"""Undo: an import that has not started is taken back."""

from __future__ import annotations

from typing import Any

from fairlane.model.errors import NotFound, Refused
from fairlane.model.task import Task
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.journal import Journal
from fairlane.service.sourcing.ending import cancel
from fairlane.service.sourcing.merging import untouched
from fairlane.service.sourcing.remembered import entries, remember
from fairlane.service.tasks import Undone
from fairlane.store.base import Writing


def undo(desk: Desk, number: int | None = None, dry_run: bool = False) -> dict[str, Any]:
    """Cancel what an import created and what has not started; by default the last one's."""
    try:
        with desk.store.write() as tx:
            document = _undo(desk, tx, number)
            if dry_run:
                raise Undone(document | {"dry_run": True})
    except Undone as undone:
        return undone.document
    return document


def _undo(desk: Desk, tx: Writing, wanted: int | None) -> dict[str, Any]:
    number, held = _find(tx, wanted)
    policy = desk.policy_for_reading(tx)  # a broken file must not keep work in the queue
    journal = Journal(tx, policy, desk.now(), desk.actor)
    known = entries(tx, held["key"])
    tasks = tx.tasks(held["items"].values())
    canceled, left = [], []
    reason = f"import {number} undone"
    for item, name in held["items"].items():
        task = tasks[name]
        if not untouched(task):
            left.append({"id": name, "reason": _why(task)})
            continue
        cancel(journal, task, reason)
        canceled.append({"id": name, "reason": reason})
        known[item]["away"] = "undone"
    journal.note(
        "import_undone",
        number=number,
        source=held["source"],
        canceled=len(canceled),
        left=len(left),
    )
    journal.close()
    remember(tx, held["key"], known)
    tx.put_value(f"import:{number}", held | {"undone": True})
    told = {"source": held["source"], "path": held["path"], "dry_run": False}
    return {"schema": SCHEMA, "import": number, **told, "canceled": canceled, "left": left}


def _find(tx: Writing, wanted: int | None) -> tuple[int, dict[str, Any]]:
    """The import of that number; one that was undone is refused."""
    last = tx.value("import")
    number = last if wanted is None else wanted
    held = None if number is None else tx.value(f"import:{number}")
    if held is None:
        message = "nothing was imported" if number is None else f"there is no import {number}"
        hint = f"The last one is {last}." if last else "See fairlane import --help."
        raise NotFound(message, hint, code="unknown_import")
    if held.get("undone"):
        hint = "Name another one by its number: fairlane undo N."
        raise Refused(f"import {number} was undone already", hint, code="undone")
    return number, held


def _why(task: Task) -> str:
    if task.attempts and not task.status.final:
        return f"it has started (it is {task.status})"
    return f"it is {task.status}"
