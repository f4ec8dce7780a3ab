"""Groups: tasks followed together; how far they are, and whether they are stranded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlane.engine.context import Context
from fairlane.model.names import SCHEMA
from fairlane.model.plan import Hold
from fairlane.model.project import Group, Pause
from fairlane.model.task import Status, Task
from fairlane.planner.readiness import GATE, SENTENCES
from fairlane.service.reports import documents
from fairlane.service.reports.documents import shown, title_of, tokens_of
from fairlane.service.reports.listing import Holds, every, lineage
from fairlane.store.base import Filter, Placed, Reading

if TYPE_CHECKING:
    from fairlane.model.documents import groups

#: Holds that mean: there is no capacity for it.
_NO_CAPACITY = ("caps", "worker")


def list_groups(context: Context) -> groups.GroupsAnswer:
    """Every group with its progress."""
    with context.store.read() as reading:
        view = View(context, reading)
        rows = [view.document(name) for name in sorted(view.groups)]
    return {"schema": SCHEMA, "groups": rows}


def show_group(context: Context, name: str) -> groups.FullGroupAnswer:
    """One group: its progress, and what holds it up."""
    with context.store.read() as reading:
        names = lineage(reading, name)
        tasks = {member: list(every(reading, Filter(group=member))) for member in names}
        view = View(context, reading, tasks)
        own = [documents.linked(placed.task.id, placed.task.status) for placed in tasks[name]]
        members = [placed for member in names for placed in tasks[member]]
        group: groups.FullGroupDocument = {
            **view.document(name),
            "tasks": own,
            "tree": [{**view.document(below), "depth": at} for below, at in view.under(name)],
            **progress_of(reading, view.holds, name, members),
        }
    return {"schema": SCHEMA, "group": group}


class View:
    """All groups with what is counted in them; each one's tasks are counted once."""

    def __init__(
        self,
        context: Context,
        reading: Reading,
        tasks: Mapping[str, Iterable[Placed]] | None = None,
    ) -> None:
        self._reading, self.holds = reading, Holds(context, reading)
        self._tasks = tasks or {}  # those that were read already
        self.groups = reading.table(Group)
        self._below: dict[str, list[str]] = {}
        for group in self.groups.values():
            if group.parent is not None:
                self._below.setdefault(group.parent, []).append(group.name)
        self._own: dict[str, Counter[str]] = {}
        self._paused = reading.table(Pause)

    def under(self, name: str) -> list[tuple[str, int]]:
        """A group and those under it, each after the one above it, with its depth."""
        members, left = [], [(name, 0)]
        while left:
            here, depth = left.pop()
            members.append((here, depth))
            left += [(below, depth + 1) for below in reversed(self._below.get(here, ()))]
        return members

    def document(self, name: str) -> groups.GroupDocument:
        """How far a group is, with those under it."""
        names = [member for member, _ in self.under(name)]
        counts: Counter[str] = Counter()
        for member in names:
            counts += self._count(member)
        ready = counts.pop("ready", 0)
        group = self.groups[name]
        return {
            "name": name,
            "title": group.title,
            "parent": group.parent,
            "priority": group.priority,
            "groups": sorted(names[1:]),
            "progress": progress(counts),
            "total": counts.total(),
            "by_status": documents.counts(counts),
            "ready": ready,
            "waiting": counts["queued"] - ready,
            "done": 0 < counts["done"] == counts.total() - counts["canceled"],
            "stranded": bool(ready) and self._is_stranded(set(names), counts),
            "paused": f"group:{name}" in self._paused,
        }

    def _count(self, name: str) -> Counter[str]:
        """A group's own tasks by status, and how many are ready."""
        counts = self._own.get(name)
        if counts is None:
            counts = self._own[name] = Counter()
            for placed in self._tasks.get(name) or every(self._reading, Filter(group=name)):
                counts[str(placed.task.status)] += 1
                counts["ready"] += placed.task.status is Status.QUEUED and not placed.wait
        return counts

    def _is_stranded(self, names: set[str], counts: Counter[str]) -> bool:
        """Ready tasks, nothing in flight, and no capacity for any of its kinds."""
        if counts["leased"] or counts["running"]:
            return False
        lanes = [lane for lane in self.holds.snapshot.lanes if lane.key.group in names]
        if any(pick.lane.group in names for pick in self.holds.plan.picks):
            return False
        holds = [self.holds.lanes.get(lane.key) for lane in lanes]
        return bool(holds) and all(hold and hold.gate in _NO_CAPACITY for hold in holds)


def progress(counts: Counter[str]) -> str:
    """`7 of 12 done, 1 parked`."""
    done = f"{counts['done']} of {counts.total()} done"
    rest = [f", {counts[word]} {word}" for word in ("parked", "canceled") if counts[word]]
    return done + "".join(rest)


#: How many tasks are named where many are the same.
NAMED = 10


def progress_of(
    reading: Reading, holds: Holds, name: str, placed: Sequence[Placed]
) -> groups.GroupProgressDocument:
    """What is known of a group's tasks, those of groups under it included."""
    queued = [row.task for row in placed if row.task.status is Status.QUEUED]
    hold_of = holds.of(placed)
    usage = reading.usage(f"group:{name}", None)
    return {
        "running": [_running(reading, row.task) for row in placed if row.task.status.in_flight],
        "next": [task.id for task in queued if hold_of[task.id] is None],
        "holds": _by_code(queued, hold_of),
        "parked": [
            {"id": row.task.id, "group": row.task.group, "reason": row.task.reason}
            for row in placed
            if row.task.status is Status.PARKED
        ],
        "span": _span([row.task for row in placed]),
        "tokens": sum(tokens_of(booked, holds.policy) for booked in usage),
        "usd": sum(booked.usd for booked in usage) / 1_000_000,
    }


def _running(reading: Reading, task: Task) -> groups.GroupRunningDocument:
    attempt = reading.attempt(task.lease.id) if task.lease else None
    return {
        "id": task.id,
        "group": task.group,
        "title": title_of(task),
        "status": str(task.status),
        "worker": task.lease.worker if task.lease else None,
        "attempt": task.attempts,
        "since": shown(attempt.leased_at if attempt else None),
        "note": attempt.note if attempt else "",
    }


def _by_code(
    queued: Iterable[Task], hold_of: dict[str, Hold | None]
) -> list[groups.GroupHoldDocument]:
    """What does not start now, by what holds it, with the sentence that fits them all."""
    rows: dict[tuple[str, str], groups.GroupHoldDocument] = {}
    for task in queued:
        hold = hold_of[task.id]
        if hold is None:
            continue
        reason = SENTENCES[hold.code] if hold.gate == GATE else hold.reason
        row = rows.setdefault(
            (hold.code, reason),
            {"gate": hold.gate, "code": hold.code, "reason": reason, "count": 0, "tasks": []},
        )
        row["count"] += 1
        if len(row["tasks"]) < NAMED:
            row["tasks"].append(task.id)
    return sorted(rows.values(), key=lambda row: -row["count"])


def _span(tasks: Sequence[Task]) -> groups.SpanDocument:
    ends = [task.ended_at for task in tasks if task.status.final and task.ended_at is not None]
    over = bool(tasks) and all(task.status.final for task in tasks)
    return {
        "from": shown(min((task.created_at for task in tasks), default=None)),
        "until": shown(max(ends, default=None)) if over else None,
    }
