"""Lists of tasks, and one task whole; each queued one with what holds it now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from typing import Any

from fairlane.model.errors import Invalid, NotFound, did_you_mean
from fairlane.model.project import groups_under
from fairlane.model.task import Status, Task
from fairlane.planner.readiness import GATE, SENTENCES
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.reports import documents
from fairlane.service.reports.holds import Holds, hold_document
from fairlane.store.base import Filter, Placed, Reading

#: Gates and codes by which a list can be narrowed.
HOLDS = (
    "paused", "cooldown", "probe", "budget", "cap", "caps", "cap_zero", "lock", "locks", "reserved",
    "workspace", "worker", "no_slot", "no_worker", "no_label", "unknown_agent", "batch", GATE,
    *SENTENCES,
)  # fmt: skip
#: How many of a task's events `show` tells.
EVENTS_SHOWN = 20
#: How many tasks are read at once.
PAGE = 1000


def list_tasks(
    desk: Desk,
    *,
    project: str | None = None,
    kind: str | None = None,
    status: Sequence[str] = (),
    group: str | None = None,
    held_by: str | None = None,
    after: int = 0,
    limit: int | None = None,
) -> dict[str, Any]:
    """Tasks in the order in which they were added, each with what holds it.

    `after` and `limit` take a page; `cursor` in the answer is the next `after`, or null.
    """
    if held_by is not None and held_by not in HOLDS:
        raise Invalid(f"no hold is called {held_by!r}", did_you_mean(held_by, HOLDS))
    which = Filter(_statuses(status), project, kind, group)
    with desk.store.read() as reading:
        holds = Holds(desk, reading)
        size = PAGE if limit is None else min(PAGE, limit + 1)
        found = _matching(reading, which, holds, held_by, after, size)
        page = list(found if limit is None else islice(found, limit + 1))
        more = limit is not None and len(page) > limit
        page = page[:limit]
        held = holds.of(page)
    rows = [documents.row(placed, held.get(placed.task.id)) for placed in page]
    return {"schema": SCHEMA, "tasks": rows, "cursor": page[-1].task.seq if more else None}


def show(desk: Desk, task: str) -> dict[str, Any]:
    """One task: what it says, its attempts, its last events, and what holds it."""
    with desk.store.read() as reading:
        placed = reading.placed(task)
        if placed is None:
            hint = "`fairlane list` shows what there is."
            raise NotFound(f"there is no task {task!r}", hint, code="unknown_task")
        queued = placed.task.status is Status.QUEUED
        hold = Holds(desk, reading).of([placed])[task] if queued else None
        statuses = reading.statuses(placed.task.needs) if placed.task.needs else {}
        attempts = [documents.attempt(each) for each in reading.attempts(task)]
        events = reading.events(task=task, limit=EVENTS_SHOWN, last=True)
        dependents = reading.statuses(reading.dependents(task))
    return {
        "schema": SCHEMA,
        "task": documents.whole(placed, hold),
        "hold": hold_document(hold),
        "attempts": attempts,
        "needs": [{"id": name, "status": str(statuses[name])} for name in placed.task.needs],
        "dependents": [{"id": name, "status": str(each)} for name, each in dependents.items()],
        "events": [documents.event(each) for each in events],
    }


def every(reading: Reading, which: Filter, after: int = 0, size: int = PAGE) -> Iterator[Placed]:
    """All tasks that fit, so many at once, in the order of `seq`."""
    while page := reading.listing(which, after, size):
        yield from page
        after = page[-1].task.seq
        if len(page) < size:
            break


def lineage(reading: Reading, group: str) -> list[str]:
    """A known group and all groups under it."""
    groups = reading.groups()
    if group not in groups:
        near = did_you_mean(group, groups)
        raise NotFound(f"there is no group {group!r}", near, code="unknown_group")
    return groups_under(groups, group)


def _matching(
    reading: Reading, which: Filter, holds: Holds, held_by: str | None, after: int, size: int
) -> Iterator[Placed]:
    if held_by is None:
        return every(reading, which, after, size)
    codes = SENTENCES if held_by == GATE else (held_by,)
    filters = [replace(which, wait=code) for code in codes if code in SENTENCES]
    lanes = holds.lanes_held_by(held_by)
    if lanes:
        filters.append(replace(which, held_lanes=lanes))
    pages = [every(reading, each, after, size) for each in filters]
    apart = {*holds.picked, *holds.arrived}
    kept = (each for each in merge(*pages, key=_seq) if each.task.id not in apart)
    return merge(kept, _arrived(reading, which, holds, held_by, after), key=_seq)


def _arrived(
    reading: Reading, which: Filter, holds: Holds, held_by: str, after: int
) -> list[Placed]:
    """Tasks that no longer wait for what the store says, by what holds them instead."""
    found = [each for name in holds.arrived if (each := reading.placed(name)) is not None]
    held = holds.of(found)
    fit = [
        each
        for each in found
        if (hold := held.get(each.task.id)) and held_by in (hold.code, hold.gate)
        if each.task.seq > after and _fits(which, each.task)
    ]
    return sorted(fit, key=_seq)


def _fits(which: Filter, task: Task) -> bool:
    if which.status and task.status not in which.status:
        return False
    wanted = ((which.project, task.project), (which.kind, task.kind), (which.group, task.group))
    return all(asked is None or asked == has for asked, has in wanted)


def _seq(placed: Placed) -> int:
    return placed.task.seq


def _statuses(words: Sequence[str]) -> tuple[Status, ...]:
    for word in words:
        if word not in set(map(str, Status)):
            raise Invalid(f"there is no status {word!r}", did_you_mean(word, map(str, Status)))
    return tuple(Status(word) for word in words)
