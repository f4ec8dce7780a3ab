"""Conclude: the plan that a finished round amounts to, and the digests that name it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from fairlane.model.codec import canonical, digest, encode
from fairlane.model.instant import Instant
from fairlane.model.plan import Decided, Held, Hold, Pick, Plan, Reason
from fairlane.model.record import changed
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Lane
from fairlane.planner.round import Round
from fairlane.planner.rules import LaneRules
from fairlane.policy.policy import Policy

if TYPE_CHECKING:
    from fairlane.model.documents.reports import DigestsDocument

#: A lane of which something is left over: its rules, how many, the first few.
Left: TypeAlias = tuple[LaneRules, int, tuple[str, ...]]


def conclude(round: Round, picks: list[Pick], left: list[Left]) -> Plan:
    """Every lane left over gets its hold, as of the end of the round; `left` is in order."""
    hold_of: dict[LaneRules, Hold] = {}
    holds: list[Held] = []
    for lane, count, tasks in left:
        hold = hold_of.get(lane)
        if hold is None:
            hold = hold_of[lane] = round.first_hold(lane) or batch_hold(round)
        holds.append(Held(hold, count, tasks))
    holds += round.waiting
    return Plan(
        now=round.now,
        room=round.room,
        picks=tuple(picks),
        reclaims=tuple(round.reclaims),
        holds=tuple(holds),
        reason=reason_of(round, bool(picks), bool(left)),
        wake_at=wake_at(round, [*hold_of.values(), *(row.hold for row in round.waiting)]),
        clocks=round.share.after(),
    )


def batch_hold(round: Round) -> Hold:
    """What holds a lane that passes every gate when the batch is full."""
    until = round.batch_begun + round.policy.cycle.interval
    started = f"{round.policy.capacity.batch} have started in this interval"
    return Hold("batch", "batch", f"the batch is full: {started}", until)


def reason_of(round: Round, picks: bool, left: bool) -> Reason:
    """What ended the round, the first that fits."""
    if "all" in round.rules.pauses:
        return Reason.PAUSED
    if not left:
        return Reason.READY if picks else Reason.NONE
    if round.free == 0:
        return Reason.CAPACITY
    return Reason.BATCH if round.batch_left == 0 else Reason.HELD


def wake_at(round: Round, holds: Iterable[Hold]) -> Instant | None:
    """The earliest time at which a hold, a wait or a park ends by itself, or a lease expires."""
    leases = [flight.lease for flight in round.snapshot.in_flight]
    return earliest(round, holds, [lease.expires_at for lease in leases if not lease.alive])


def earliest(
    round: Round, holds: Iterable[Hold], expiries: Iterable[Instant | None]
) -> Instant | None:
    """The same where it is known when leases expire that nobody keeps alive."""
    times = {*expiries, round.snapshot.half_open_at, *(hold.until for hold in holds)}
    return min((time for time in times if time is not None and time > round.now), default=None)


def digests(snapshot: Snapshot, policy: Policy, plan: Plan) -> DigestsDocument:
    """Of snapshot, policy and plan, over canonical JSON."""
    return {
        "snapshot": digest(canonical(snapshot_document(snapshot))),
        "policy": policy.digest(),
        "plan": digest(plan_bytes(plan)),
    }


def snapshot_document(snapshot: Snapshot) -> dict[str, object]:
    """A snapshot as JSON has it: of a lane its key, its count and its tasks in order.

    Lanes are in the order of their keys, whatever order the store has. Where the two orders of a
    lane differ, both are there.
    """
    document = encode(changed(snapshot, lanes=()))
    lanes = sorted(snapshot.lanes, key=lambda lane: canonical(lane.key))
    assert isinstance(document, dict)
    return document | {"lanes": [_lane(lane) for lane in lanes]}


def _lane(lane: Lane) -> list[object]:
    row: list[object] = [lane.key, lane.count, lane.by_ready]
    return row if lane.by_created == lane.by_ready else [*row, lane.by_created]


def short_document(short: Decided) -> dict[str, object]:
    """A plan in short, as a decision records it: who starts, and what holds how many others."""
    document: dict[str, object] = {**short.plan.document()}
    document |= {"holds": sorted(short.holds), "held": dict(short.held)}
    return document | {"clocks": short.plan.clocks.document()} if short.plan.picks else document


def plan_bytes(plan: Plan) -> bytes:
    """A plan as bytes: two plans are the same when these are."""
    return canonical({**plan.document(), "clocks": plan.clocks.document()})
