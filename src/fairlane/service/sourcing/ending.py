"""Items that are over: closed in their source or gone from it, and how their tasks end."""

from __future__ import annotations

from collections.abc import Container, Mapping

from fairlane.intake.sources.base import Found, LeftOut, Standing
from fairlane.model.event import Happening
from fairlane.model.frozen import changed
from fairlane.model.task import Task
from fairlane.service.journal import Journal
from fairlane.service.sourcing.merging import untouched
from fairlane.service.sourcing.remembered import Entry

CLOSED_IN, GONE_FROM = "closed in", "gone from"


def over(found: Found, entries: Mapping[str, Entry]) -> dict[str, str]:
    """The items with a task that are over, each with the words that say how.

    A broken record may be any of those that are missing: then nothing counts as gone.
    """
    closed = {item.id for item in found.items if item.standing is Standing.CLOSED}
    ended = {name: CLOSED_IN for name in entries if name in closed}
    if not _nameless(found, entries):
        ended |= dict.fromkeys(_missing(found, entries), GONE_FROM)
    return ended


def in_doubt(found: Found, entries: Mapping[str, Entry]) -> dict[str, str]:
    """The items with a task that are gone, unless they are broken records; each with the first."""
    broken = _nameless(found, entries)
    first = broken[0].where or broken[0].id if broken else ""
    return dict.fromkeys(_missing(found, entries), first) if broken else {}


def _missing(found: Found, entries: Mapping[str, Entry]) -> list[str]:
    """The items with a task of which the source says nothing, not even that they are left out."""
    named = {item.id for item in found.items} | {each.id for each in found.left_out}
    return [name for name in entries if name not in named]


def _nameless(found: Found, entries: Mapping[str, Entry]) -> list[LeftOut]:
    """The broken records that may be any item."""
    known = entries.keys() | {item.id for item in found.items}
    return [each for each in found.left_out if each.bad and not each.sure and each.id not in known]


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
