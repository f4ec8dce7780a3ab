"""Holds: why each task of a list does not start now, out of one plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairlane.model.lane import LaneKey
from fairlane.model.plan import Hold
from fairlane.model.snapshot import waits_of
from fairlane.model.task import Status
from fairlane.planner import readiness
from fairlane.service.desk import Desk
from fairlane.service.looking import preview
from fairlane.store.base import Placed, Reading


class Holds:
    """The plan that a round would make now, asked task by task."""

    def __init__(self, desk: Desk, reading: Reading) -> None:
        self.snapshot, self.plan, self.policy = preview(desk, reading)
        self.picked = frozenset(pick.task for pick in self.plan.picks)
        self._reading = reading
        self.arrived = {each.entry.task: each for each in self.snapshot.waiting}
        self._lanes = self._by_lane()

    def of(self, placed: Iterable[Placed]) -> dict[str, Hold | None]:
        """The first hold of each task; None: it starts next, or is not queued."""
        queued = [each for each in placed if each.task.status is Status.QUEUED]
        named = {name for each in queued if each.wait for name in each.task.needs}
        named |= {each.task.parent for each in queued if each.wait and each.task.parent}
        statuses = self._reading.statuses(named) if named else {}
        return {each.task.id: self._hold(each, statuses) for each in queued}

    def lanes_held_by(self, word: str) -> tuple[LaneKey, ...]:
        """The lanes whose first hold has this code or gate."""
        return tuple(key for key, hold in self._lanes.items() if word in (hold.code, hold.gate))

    def of_lane(self, key: LaneKey) -> Hold | None:
        """What holds the tasks of a lane that were not picked."""
        return self._lanes.get(key)

    def _hold(self, placed: Placed, statuses: dict[str, Status]) -> Hold | None:
        task = placed.task
        if placed.wait:
            waiting = self.arrived.get(task.id) or waits_of(task, statuses)
            now = self.plan.now
            hold = next(readiness.waits(waiting, self.policy, now), None) if waiting else None
            if hold is not None:
                return hold
        return None if task.id in self.picked else self.of_lane(task.lane)

    def _by_lane(self) -> dict[LaneKey, Hold]:
        """Every lane that is left over has a hold of its own; its first task tells which lane."""
        keys = {name: each.lane for name, each in self.arrived.items()}
        keys |= {entry.task: lane.key for lane in self.snapshot.lanes for entry in lane.by_ready}
        return {
            keys[held.tasks[0]]: held.hold
            for held in self.plan.holds
            if held.hold.gate != readiness.GATE and held.tasks and held.tasks[0] in keys
        }


def hold_document(hold: Hold | None) -> dict[str, Any] | None:
    """As every interface shows it."""
    return None if hold is None else hold.document()
