"""Groups: tasks followed together; how far they are, and whether they are stranded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from fairlane.model.task import Status
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.grouping import story
from fairlane.service.reports.holds import Holds
from fairlane.service.reports.listing import every, lineage
from fairlane.store.base import Filter, Placed, Reading

#: Holds that mean: there is no capacity for it.
_NO_CAPACITY = ("caps", "worker")


def list_groups(desk: Desk) -> dict[str, Any]:
    """Every group with its progress."""
    with desk.store.read() as reading:
        view = View(desk, reading)
        rows = [view.document(name) for name in sorted(view.groups)]
    return {"schema": SCHEMA, "groups": rows}


def show_group(desk: Desk, name: str) -> dict[str, Any]:
    """One group: how far it and those under it are, what runs, what holds the rest."""
    with desk.store.read() as reading:
        names = lineage(reading, name)
        tasks = {member: list(every(reading, Filter(group=member))) for member in names}
        view = View(desk, reading, tasks)
        own = [{"id": each.task.id, "status": str(each.task.status)} for each in tasks[name]]
        tree = [view.document(member) | {"depth": depth} for member, depth in view.under(name)]
        group = view.document(name) | {"tasks": own, "tree": tree}
        group |= story.told(
            reading, view.holds, name, [each for one in names for each in tasks[one]]
        )
    return {"schema": SCHEMA, "group": group}


class View:
    """All groups with what is counted in them; each one's tasks are counted once."""

    def __init__(
        self, desk: Desk, reading: Reading, tasks: Mapping[str, Iterable[Placed]] | None = None
    ) -> None:
        self._reading, self.holds = reading, Holds(desk, reading)
        self._tasks = tasks or {}  # those that were read already
        self.groups = reading.groups()
        self._below: dict[str, list[str]] = {}
        for each in self.groups.values():
            if each.parent is not None:
                self._below.setdefault(each.parent, []).append(each.name)
        self._own: dict[str, Counter[str]] = {}
        self._paused = {pause.scope for pause in reading.pauses()}

    def under(self, name: str) -> list[tuple[str, int]]:
        """A group and those under it, each after the one above it, with its depth."""
        found, left = [], [(name, 0)]
        while left:
            here, depth = left.pop()
            found.append((here, depth))
            left += [(each, depth + 1) for each in reversed(self._below.get(here, ()))]
        return found

    def document(self, name: str) -> dict[str, Any]:
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
            "by_status": {str(status): counts[str(status)] for status in Status},
            "ready": ready,
            "waiting": counts["queued"] - ready,
            "done": 0 < counts["done"] == counts.total() - counts["canceled"],
            "stranded": bool(ready) and self._is_stranded(set(names), counts),
            "paused": f"group:{name}" in self._paused,
        }

    def _count(self, name: str) -> Counter[str]:
        """A group's own tasks by status, and how many are ready."""
        found = self._own.get(name)
        if found is None:
            found = self._own[name] = Counter()
            for each in self._tasks.get(name) or every(self._reading, Filter(group=name)):
                found[str(each.task.status)] += 1
                found["ready"] += each.task.status is Status.QUEUED and not each.wait
        return found

    def _is_stranded(self, names: set[str], counts: Counter[str]) -> bool:
        """Ready tasks, nothing in flight, and no capacity for any of its kinds."""
        if counts["leased"] or counts["running"]:
            return False
        lanes = [lane for lane in self.holds.snapshot.lanes if lane.key.group in names]
        if any(pick.lane.group in names for pick in self.holds.plan.picks):
            return False
        holds = [self.holds.of_lane(lane.key) for lane in lanes]
        return bool(holds) and all(hold and hold.gate in _NO_CAPACITY for hold in holds)


def progress(counts: Counter[str]) -> str:
    """`7 of 12 done, 1 parked`."""
    told = f"{counts['done']} of {counts.total()} done"
    rest = [f", {counts[word]} {word}" for word in ("parked", "canceled") if counts[word]]
    return told + "".join(rest)
