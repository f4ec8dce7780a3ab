"""Upcoming: what starts next as slots free up, in order, with the numbers that decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlane.model.plan import Plan
from fairlane.model.resources import Worker
from fairlane.model.snapshot import Snapshot
from fairlane.planner import lanes as planner
from fairlane.policy.policy import Policy
from fairlane.service.reports.documents import title_of
from fairlane.store.base import Reading

#: How many are told, and how many tasks of a lane are read for them.
NEXT_MAX = 7
WINDOW = 32


def upcoming(
    reading: Reading, snapshot: Snapshot, plan: Plan, policy: Policy, most: int = NEXT_MAX
) -> list[dict[str, Any]]:
    """The next starts: what may start now, then what would with so many slots more.

    Only room is made larger: what a pause, budget, lock or other cap holds is not among them.
    """
    picks = plan.picks
    if len(picks) < most:
        picks = _with_room(reading, snapshot, plan, policy, most).picks
    tasks = reading.tasks(pick.task for pick in picks[:most])
    now = {pick.task for pick in plan.picks}
    return [
        pick.document() | {"title": title_of(tasks[pick.task]), "now": pick.task in now}
        for pick in picks[:most]
        if pick.task in tasks
    ]


def _with_slots(worker: Worker, more: int) -> Worker:
    return worker if worker.slots is None else replace(worker, slots=worker.slots + more)


def _with_room(reading: Reading, snapshot: Snapshot, plan: Plan, policy: Policy, more: int) -> Plan:
    """The plan of the same situation with room for `more`."""
    cap, batch = policy.caps.get("all"), policy.capacity.batch
    caps = dict(policy.caps)
    if cap is not None:
        caps["all"] = max(cap, plan.room.in_flight) + more
    capacity = replace(policy.capacity, batch=None if batch is None else batch + more)
    roomy = replace(policy, caps=caps, capacity=capacity)
    workers = tuple(_with_slots(each, more) for each in snapshot.workers)
    assumed = snapshot.assumed and _with_slots(snapshot.assumed, more)
    larger = replace(snapshot, workers=workers, assumed=assumed)
    try:
        return planner.plan(larger, roomy, plan.now)
    except planner.WindowUsedUp as short:
        age_from = policy.score.age_from
        wider = {key: reading.lane(key, age_from, WINDOW) for key in short.lanes}
        found = tuple(wider.get(lane.key) or lane for lane in snapshot.lanes)
        try:
            return planner.plan(replace(larger, lanes=found), roomy, plan.now)
        except planner.WindowUsedUp:  # more at once than anybody reads: what starts now is enough
            return plan
