"""Row: a task with everything under which it is found."""

from __future__ import annotations

from fairlane.model.errors import Refused
from fairlane.model.task import Entry, LaneKey, Status, Task
from fairlane.store.base import Filter, Placed

#: What a task is looked up by beside its status, in the order of `Row.names`.
NAMES = ("project", "kind", "group", "pool", "agent", "parent")

#: What a compacted task says in place of everything else.
COMPACTED = {"compacted": True}

Shelf = tuple[Status, str]  # status, and what queued tasks wait for
Sort = tuple[Status, str, str, str]  # as tallies count


class Row:
    """A stored task. Two rows of one task are compared part by part."""

    __slots__ = ("due", "entry", "lane", "links", "names", "placed", "seq", "shelf", "sort")

    def __init__(self, placed: Placed) -> None:
        task = placed.task
        queued = task.status is Status.QUEUED
        wait = placed.wait if queued else ""
        self.placed = placed
        self.seq = task.seq
        self.shelf: Shelf = (task.status, wait)
        self.sort: Sort = (task.status, wait, task.project, task.kind)
        self.names = (task.project, task.kind, task.group, task.pool, task.agent, task.parent)
        self.due = None if placed.due_at is None else (placed.due_at, task.seq, task.id)
        self.lane: LaneKey | None = None
        self.entry: Entry | None = None
        self.links: frozenset[str] = frozenset()
        if queued:
            self.links = named_by(task)
        if queued and not wait:
            self.lane = task.lane
            self.entry = task.entry


def named_by(task: Task) -> frozenset[str]:
    """The tasks that this one names."""
    return frozenset((*task.needs, task.parent) if task.parent else task.needs)


def fits(row: Row, which: Filter) -> bool:
    """Whether every field of the filter that is set fits."""
    if which.status and row.shelf[0] not in which.status:
        return False
    if which.wait is not None and row.shelf != (Status.QUEUED, which.wait):
        return False
    if which.held_lanes is not None and row.lane not in which.held_lanes:
        return False
    for name, value in zip(NAMES, row.names, strict=True):
        wanted = getattr(which, name)
        if wanted is not None and wanted != value:
            return False
    return True


def check_placed(placed: Placed) -> None:
    """Refuses what must never be true of a task."""
    task = placed.task
    queued = task.status is Status.QUEUED
    if placed.wait and not queued:
        raise Refused(f"task {task.id} is {task.status} and cannot wait")
    if queued and not placed.wait and task.ready_since is None:
        raise Refused(f"task {task.id} is ready without a time since when")
    if task.status.final != (task.ended_at is not None):
        raise Refused(f"task {task.id} is {task.status} with ended_at {task.ended_at}")


def compacted(task: Task) -> Task:
    """What remains of a finished task: what it is counted and found by."""
    return Task(
        id=task.id,
        seq=task.seq,
        project=task.project,
        kind=task.kind,
        agent=task.agent,
        priority=task.priority,
        parent=task.parent,
        group=task.group,
        pool=task.pool,
        estimate_tokens=task.estimate_tokens,
        created_at=task.created_at,
        ready_since=task.ready_since,
        status=task.status,
        depth=task.depth,
        failures=task.failures,
        attempts=task.attempts,
        ended_at=task.ended_at,
        meta=COMPACTED,
    )
