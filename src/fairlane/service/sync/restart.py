"""Items that a person has put back after the end of their task: it starts again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fairlane.engine.task_changes import TaskChanges
from fairlane.intake.sources.base import Item
from fairlane.model.event import Happening
from fairlane.model.task import Status, Task
from fairlane.service.sync.draft import Draft
from fairlane.service.sync.mapping import Entry


def is_due(entry: Entry | None, item: Item, task: Task | None) -> bool:
    """Whether its task is over, and the item was put back since; each time counts once."""
    if entry is None or task is None or not item.again or item.again == entry.get("again"):
        return False
    return task.status.final or task.status is Status.PARKED


def clear_counters(
    changes: TaskChanges, drafts: Iterable[Draft], tasks: Mapping[str, Task]
) -> None:
    """Retry those that are parked; what is done or canceled enters as if it were added again."""
    for draft in drafts:
        if draft.again and tasks[draft.task].status is Status.PARKED:
            changes.happen(tasks[draft.task], Happening.RETRY)
    changes.close()


def note(entries: Mapping[str, Entry], items: Iterable[Item], followed: Collection[str]) -> None:
    """Remember of the items that were followed that this is done; one put back later is news."""
    for item in items:
        entry = entries.get(item.id)
        if entry is not None and not item.again:
            entry.pop("again", None)
        elif entry is not None and item.id in followed:
            entry["again"] = item.again
