"""The reference planner: looks at every task, asks every gate, sorts, takes the first, repeats.

So short that it is obviously right. It is the specification; `lanes` must agree with it.
"""

from __future__ import annotations

from fairlane.model.instant import Instant
from fairlane.model.plan import IDS_SHOWN, Pick, Plan
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Entry, LaneKey, shape_of
from fairlane.planner.conclude import Left, conclude
from fairlane.planner.order import Place
from fairlane.planner.round import Round
from fairlane.policy.policy import Policy

Candidate = tuple[LaneKey, Entry]


def plan(snapshot: Snapshot, policy: Policy, now: Instant) -> Plan:
    """What to start now, decided task by task."""
    round = Round(snapshot, policy, now)
    age_from = policy.score.age_from
    tasks = [(lane.key, entry) for lane in round.lanes for entry in lane.in_order(age_from)]

    def place(candidate: Candidate) -> Place:
        lane, entry = candidate
        return round.order.full(round.order.rank(lane, entry), lane.project)

    def passes(lane: LaneKey) -> bool:
        return round.first_hold(round.rules.of_lane(lane, shape_of(lane))) is None

    picks: list[Pick] = []
    while not round.is_full():
        startable = [task for task in tasks if passes(task[0])]
        if not startable:
            break
        first = min(startable, key=place)
        tasks.remove(first)
        lane, entry = first
        picks.append(round.take(lane, round.rules.of_lane(lane, shape_of(lane)), entry))
    return conclude(round, picks, _left(round, picks, sorted(tasks, key=place)))


def _left(round: Round, picks: list[Pick], tasks: list[Candidate]) -> list[Left]:
    """What was not picked, by lane, in the order of the lanes' heads."""
    left: dict[LaneKey, list[str]] = {}
    for lane, entry in tasks:
        left.setdefault(lane, []).append(entry.task)
    counts = {lane.key: lane.count for lane in round.lanes}
    for pick in picks:
        counts[pick.lane] -= 1
    return [
        (round.rules.of_lane(lane, shape_of(lane)), counts[lane], tuple(ids[:IDS_SHOWN]))
        for lane, ids in left.items()
    ]
