"""Lists of tasks with what holds each now, one task whole, and the log of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from fairlane.engine.context import Context
from fairlane.engine.look.planned import preview
from fairlane.model.errors import Invalid, NotFound, did_you_mean
from fairlane.model.names import SCHEMA
from fairlane.model.plan import Hold
from fairlane.model.project import Group, Project, groups_under
from fairlane.model.record import replace
from fairlane.model.snapshot import waits_of
from fairlane.model.task import Attempt, LaneKey, Status, Task
from fairlane.planner import gates, readiness
from fairlane.planner.readiness import GATE, SENTENCES
from fairlane.service.attempt_named import unknown_task
from fairlane.service.reports import documents, merging
from fairlane.store.base import Filter, Placed, Reading

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import (
        EventsAnswer,
        FollowedEvent,
        TaskAnswer,
        TaskDocument,
        TasksAnswer,
    )
    from fairlane.model.documents.work import WorkDocument

#: Gates and codes by which a list can be narrowed.
HOLDS = (*sorted(gates.HOLDS), "batch", GATE, *SENTENCES)
#: How many of a task's events `show` has.
EVENTS_SHOWN = 20
#: How many tasks are read at once.
PAGE = 1000


def list_tasks(
    context: Context,
    *,
    project: str | None = None,
    kind: str | None = None,
    status: Sequence[str] = (),
    group: str | None = None,
    held_by: str | None = None,
    cursor: int = 0,
    limit: int | None = None,
) -> TasksAnswer:
    """Tasks in the order in which they were added, each with what holds it.

    `cursor` and `limit` take a page; the answer has the next `cursor`, or null.
    """
    if held_by is not None and held_by not in HOLDS:
        raise Invalid(f"no hold is called {held_by!r}", did_you_mean(held_by, HOLDS))
    which = Filter(_statuses(status), project, kind, group)
    with context.store.read() as reading:
        holds = Holds(context, reading)
        size = PAGE if limit is None else min(PAGE, limit + 1)
        matching = _matching(reading, which, holds, held_by, cursor, size)
        page = list(matching if limit is None else islice(matching, limit + 1))
        more = limit is not None and len(page) > limit
        page = page[:limit]
        hold_of = holds.of(page)
        rows = rows_of(reading, page, hold_of)
    last = page[-1].task.seq if page else cursor
    return {"schema": SCHEMA, "tasks": rows, "cursor": last if more else None}


def show(context: Context, task: str) -> TaskAnswer:
    """One task whole: what it says, its attempts, its last events."""
    from fairlane.service.reports import outcome

    with context.store.read() as reading:
        placed = reading.placed(task)
        if placed is None:
            raise unknown_task(task)
        queued = placed.task.status is Status.QUEUED
        hold = Holds(context, reading).of([placed])[task] if queued else None
        statuses = reading.statuses(placed.task.needs) if placed.task.needs else {}
        attempts = list(reading.attempts(task))
        events = reading.events(task=task, limit=EVENTS_SHOWN, last=True)
        dependents = reading.statuses(reading.dependents(task))
        project = reading.table(Project).get(placed.task.project)
    has_repo = project is not None and project.repo is not None
    return {
        "schema": SCHEMA,
        "task": documents.whole(
            placed, hold, merging.recorded(attempts), has_repo and bool(attempts)
        ),
        "hold": hold and hold.document(),
        "attempts": [documents.attempt(attempt) for attempt in attempts],
        "answer": documents.last_answer(attempts),
        "work": _work(context, placed.task, attempts, project),
        "checks": outcome.checks_of(context.home, attempts),
        "merge_state": merging.merge_state(placed.task, attempts, has_repo),
        "question": None,
        "approval": None,
        "session": outcome.session_of(context, placed.task, attempts),
        "schedule": None,
        "needs": [documents.linked(name, statuses[name]) for name in placed.task.needs],
        "dependents": [documents.linked(name, status) for name, status in dependents.items()],
        "events": [documents.event(event) for event in events],
    }


def _work(
    context: Context, task: Task, attempts: Sequence[Attempt], project: Project | None
) -> WorkDocument | None:
    """What it changed; git is asked only where there is a repository."""
    if project is None or project.repo is None:
        return None
    from fairlane.service.work import work_of

    return work_of(context, task, attempts, project)


def rows_of(
    reading: Reading, page: Iterable[Placed], hold_of: Mapping[str, Hold | None]
) -> list[TaskDocument]:
    """Tasks as lists show them; attempts are read only of those that may have been merged."""
    projects = reading.table(Project)
    rows = []
    for placed in page:
        task, last, worked = placed.task, None, False
        if merging.may_have_merged(task):
            project = projects.get(task.project)
            last = merging.recorded(reading.attempts(task.id))
            worked = project is not None and project.repo is not None
        rows.append(documents.row(placed, hold_of.get(task.id), last, worked))
    return rows


def every(reading: Reading, which: Filter, after: int = 0, size: int = PAGE) -> Iterator[Placed]:
    """All matching tasks in the order of `seq`, read `size` at a time."""
    while page := reading.listing(which, after, size):
        yield from page
        after = page[-1].task.seq
        if len(page) < size:
            break


def lineage(reading: Reading, group: str) -> list[str]:
    """A known group and all groups under it."""
    groups = reading.table(Group)
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
    pages = [every(reading, narrowed, after, size) for narrowed in filters]
    apart = {*holds.picked, *holds.arrived}
    stored = (row for row in merge(*pages, key=_seq) if row.task.id not in apart)
    return merge(stored, _arrived(reading, which, holds, held_by, after), key=_seq)


def _arrived(
    reading: Reading, which: Filter, holds: Holds, held_by: str, after: int
) -> list[Placed]:
    """Tasks that no longer wait for what the store says, by what holds them instead."""
    arrived = [row for name in holds.arrived if (row := reading.placed(name)) is not None]
    hold_of = holds.of(arrived)
    fit = [
        row
        for row in arrived
        if (hold := hold_of.get(row.task.id)) and held_by in (hold.code, hold.gate)
        if row.task.seq > after and _fits(which, row.task)
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


class Holds:
    """The plan that a round would make now, asked task by task."""

    def __init__(self, context: Context, reading: Reading) -> None:
        self.snapshot, self.plan, self.policy = preview(context, reading)
        self.picked = frozenset(pick.task for pick in self.plan.picks)
        self._reading = reading
        self.arrived = {row.entry.task: row for row in self.snapshot.waiting}
        self.lanes = self._by_lane()  # what holds the tasks of a lane that were not picked

    def of(self, placed: Iterable[Placed]) -> dict[str, Hold | None]:
        """The first hold of each task; None: it starts next, or is not queued."""
        queued = [row for row in placed if row.task.status is Status.QUEUED]
        named = {name for row in queued if row.wait for name in row.task.needs}
        named |= {row.task.parent for row in queued if row.wait and row.task.parent}
        statuses = self._reading.statuses(named) if named else {}
        return {row.task.id: self._hold(row, statuses) for row in queued}

    def lanes_held_by(self, word: str) -> tuple[LaneKey, ...]:
        """The lanes whose first hold has this code or gate."""
        return tuple(key for key, hold in self.lanes.items() if word in (hold.code, hold.gate))

    def _hold(self, placed: Placed, statuses: dict[str, Status]) -> Hold | None:
        task = placed.task
        if placed.wait:
            waiting = self.arrived.get(task.id) or waits_of(task, statuses)
            now = self.plan.now
            hold = next(readiness.waits(waiting, self.policy, now), None) if waiting else None
            if hold is not None:
                return hold
        return None if task.id in self.picked else self.lanes.get(task.lane)

    def _by_lane(self) -> dict[LaneKey, Hold]:
        """Every lane that is left over has a hold of its own; its first task tells which lane."""
        keys = {name: waiting.lane for name, waiting in self.arrived.items()}
        keys |= {entry.task: lane.key for lane in self.snapshot.lanes for entry in lane.by_ready}
        return {
            keys[row.tasks[0]]: row.hold
            for row in self.plan.holds
            if row.hold.gate != readiness.GATE and row.tasks and row.tasks[0] in keys
        }


def page(
    context: Context,
    cursor: int | None = None,
    task: str | None = None,
    limit: int = PAGE,
    kind: str | None = None,
) -> EventsAnswer:
    """Events after a number, or the newest."""
    with context.store.read() as reading:
        events = reading.events(cursor or 0, limit, task, last=cursor is None, kind=kind)
    rows = [documents.event(event) for event in events]
    newest = rows[-1]["number"] if rows else cursor or 0
    return {"schema": SCHEMA, "events": rows, "cursor": newest}


def newest(context: Context) -> int:
    """The number of the last event."""
    with context.store.read() as reading:
        last = reading.events(0, 1, last=True)
    return last[-1].number if last else 0


def follow(context: Context, after: int, task: str | None = None) -> Iterator[FollowedEvent]:
    """Every event after a number, then new ones as they happen, until the caller stops."""
    while True:
        stamp = context.store.stamp()
        with context.store.read() as reading:
            page = reading.events(after, PAGE, task)
        for event in page:
            yield {"schema": SCHEMA, **documents.event(event)}
            after = event.number
        if len(page) < PAGE:
            context.store.wait_for_change(stamp, None, clock=context.clock)
