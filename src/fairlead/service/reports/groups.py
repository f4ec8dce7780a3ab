"""Groups: tasks followed together; how far they are, and whether they are stranded."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairlead.model.task import Status
from fairlead.service import SCHEMA
from fairlead.service.desk import Desk
from fairlead.service.grouping import story
from fairlead.service.reports.holds import Holds
from fairlead.service.reports.listing import every, lineage
from fairlead.store.base import Filter, Placed, Reading

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
        view = View(desk, reading)
        own = [{"id": each.task.id, "status": str(each.task.status)} for each in view.own(name)]
        placed = [each for member in names for each in view.own(member)]
        tree = [view.document(member) | {"depth": depth} for member, depth in view.under(name)]
        group = view.document(name) | {"tasks": own, "tree": tree}
        group |= story.told(reading, view.holds, name, placed)
    return {"schema": SCHEMA, "group": group}


class View:
    """All groups with what is counted in them; each one's tasks are read once."""

    def __init__(self, desk: Desk, reading: Reading) -> None:
        self._reading, self.holds = reading, Holds(desk, reading)
        self.groups = reading.groups()
        self._own: dict[str, list[Placed]] = {}
        self._paused = {pause.scope for pause in reading.pauses()}

    def own(self, name: str) -> list[Placed]:
        """A group's own tasks, without those of groups under it."""
        found = self._own.get(name)
        if found is None:
            found = self._own[name] = list(every(self._reading, Filter(group=name)))
        return found

    def under(self, name: str, depth: int = 0) -> list[tuple[str, int]]:
        """A group and those under it, each after the one above it, with its depth."""
        found = [(name, depth)]
        for each in self.groups.values():
            if each.parent == name:
                found += self.under(each.name, depth + 1)
        return found

    def document(self, name: str) -> dict[str, Any]:
        """How far a group is, with those under it."""
        names = lineage(self._reading, name)
        placed = [each for member in names for each in self.own(member)]
        counts = Counter(str(each.task.status) for each in placed)
        ready = sum(each.task.status is Status.QUEUED and not each.wait for each in placed)
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
