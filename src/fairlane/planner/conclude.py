"""Conclude: the plan that a finished round amounts to."""

from __future__ import annotations

from typing import TypeAlias

from fairlane.model.instant import Instant
from fairlane.model.plan import Held, Hold, Pick, Plan, Reason
from fairlane.planner.round import Round
from fairlane.planner.rules import LaneRules

#: A lane of which something is left over: its rules, how many, the first few.
Left: TypeAlias = tuple[LaneRules, int, tuple[str, ...]]


def conclude(round: Round, picks: list[Pick], left: list[Left]) -> Plan:
    """Every lane left over gets its hold, as of the end of the round; `left` is in order."""
    found: dict[LaneRules, Hold] = {}
    holds: list[Held] = []
    for lane, count, tasks in left:
        hold = found.get(lane)
        if hold is None:
            hold = found[lane] = round.first_hold(lane) or batch_hold(round)
        holds.append(Held(hold, count, tasks))
    holds += round.waiting
    return Plan(
        now=round.now,
        room=round.room,
        picks=tuple(picks),
        reclaims=tuple(round.reclaims),
        holds=tuple(holds),
        reason=_reason(round, picks, left),
        wake_at=_wake_at(round, [*found.values(), *(held.hold for held in round.waiting)]),
        clocks=round.share.after(),
    )


def batch_hold(round: Round) -> Hold:
    """What holds a lane that passes every gate when the batch is full."""
    until = round.batch_begun + round.policy.cycle.interval
    started = f"{round.policy.capacity.batch} have started in this interval"
    return Hold("batch", "batch", f"the batch is full: {started}", until)


def _reason(round: Round, picks: list[Pick], left: list[Left]) -> Reason:
    """What ended the round, the first that fits."""
    if "all" in round.rules.pauses:
        return Reason.PAUSED
    if not left:
        return Reason.READY if picks else Reason.NONE
    if round.free == 0:
        return Reason.CAPACITY
    return Reason.BATCH if round.batch_left == 0 else Reason.HELD


def _wake_at(round: Round, holds: list[Hold]) -> Instant | None:
    """The earliest time at which a hold, a wait or a park ends by itself, or a lease expires."""
    times = {hold.until for hold in holds}
    times.add(round.snapshot.half_open_at)
    for each in round.snapshot.in_flight:
        if not each.lease.alive:
            times.add(each.lease.expires_at)
    return min((time for time in times if time is not None and time > round.now), default=None)
