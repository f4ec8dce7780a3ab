"""Items that are over: closed in their source or gone from it, and how their tasks end."""

from __future__ import annotations

from collections.abc import Container, Mapping

from fairlead.intake.sources.base import Found, Standing
from fairlead.model.event import Happening
from fairlead.model.frozen import changed
from fairlead.model.task import Task
from fairlead.service.journal import Journal
from fairlead.service.sourcing.merging import untouched
from fairlead.service.sourcing.remembered import Entry

CLOSED_IN, GONE_FROM = "closed in", "gone from"


def over(found: Found, entries: Mapping[str, Entry]) -> dict[str, str]:
    """The items with a task that are over, each with the words that say how.

    A broken record may be any of those that are missing: then nothing counts as gone.
    """
    items = {item.id: item for item in found.items}
    named = {each.id for each in found.left_out}
    known = entries.keys() | items.keys()
    unsure = any(each.bad and each.id not in known for each in found.left_out)
    ended: dict[str, str] = {}
    for name in entries:
        if name in items:
            if items[name].standing is Standing.CLOSED:
                ended[name] = CLOSED_IN
        elif name not in named and not unsure:
            ended[name] = GONE_FROM
    return ended


def let_go(journal: Journal, task: Task, ours: Container[str]) -> None:
    """What its source calls over keeps no other item waiting, nor takes it along when it ends."""
    for other in journal.tx.tasks(journal.tx.dependents(task.id)).values():
        if other.id in ours and untouched(other):
            needs = tuple(each for each in other.needs if each != task.id)
            journal.tx.rewrite([journal.settle(changed(other, needs=needs))])


def cancel(journal: Journal, task: Task, reason: str) -> None:
    """A task that has not started ends for this reason."""
    journal.happen(task, Happening.CANCEL, detail=reason)
    if task.paused:
        journal.tx.drop_pause(f"task:{task.id}")
