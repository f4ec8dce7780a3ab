"""The warm planner: for whoever plans again and again; the same plans as `lanes`, sooner.

It keeps what planning reads and what did not change since the last round: the ledger of what is
in flight, the rules of lanes, their ranks, who is present. What changed it finds by itself: parts
of a snapshot that are the very objects of the last one have not changed. Where a snapshot has
something that is not kept, the lane planner makes the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fairlane.lifecycle.transitions import expired
from fairlane.model.instant import Instant
from fairlane.model.plan import Hold, Pick, Plan
from fairlane.model.project import Pool
from fairlane.model.record import changed
from fairlane.model.snapshot import Snapshot
from fairlane.planner import lanes as lane_planner
from fairlane.planner import readiness
from fairlane.planner.conclude import batch_hold, conclude, reason_of, wake_at
from fairlane.planner.kept import Doubled, Kept
from fairlane.planner.lanes import WindowUsedUp, left_of, offers_of, short_of, take_all
from fairlane.planner.order import Flight, Share
from fairlane.planner.round import Round
from fairlane.planner.rules import LaneRules
from fairlane.policy.policy import Policy


class Decided(NamedTuple):
    """A plan without its holds, and how many tasks each code holds."""

    plan: Plan
    held: Mapping[str, int]


def decided(plan: Plan) -> Decided:
    """The same of a plan that was made in full."""
    held: Counter[str] = Counter()
    for row in plan.holds:
        held[row.hold.code] += row.count
    return Decided(changed(plan, holds=()), held)


class WarmPlanner:
    """Plans one queue, round after round."""

    def __init__(self) -> None:
        self._kept: Kept | None = None

    def plan(self, snapshot: Snapshot, policy: Policy, now: Instant) -> Plan:
        """What to start now, and why the rest waits."""
        round = self._begin(snapshot, policy, now)
        return lane_planner.plan(snapshot, policy, now) if round is None else round.in_full()

    def decide(self, snapshot: Snapshot, policy: Policy, now: Instant) -> Decided:
        """What to start now."""
        round = self._begin(snapshot, policy, now)
        if round is None:
            return decided(lane_planner.plan(snapshot, policy, now))
        return round.in_short()

    def _begin(self, snapshot: Snapshot, policy: Policy, now: Instant) -> KeptRound | None:
        """A round on what is kept; None: there is something in it that is not kept."""
        if not _can_keep(snapshot, policy, now):
            return None
        try:
            if self._kept is None or not self._kept.fits(snapshot, policy):
                self._kept = Kept(snapshot, policy, now)
            round = KeptRound(self._kept, snapshot, policy, now)
        except Doubled:
            self._kept = None
            return None
        return None if round.may_reserve() else round


def _can_keep(snapshot: Snapshot, policy: Policy, now: Instant) -> bool:
    """Whether there are no budgets, no workspaces, and nothing to reclaim."""
    if policy.budget or snapshot.stale:
        return False
    for project in snapshot.projects.values():
        if project.budgets or project.workspaces is not None:
            return False
    for flight in snapshot.in_flight:
        if flight.workspace is not None or expired(flight, now):
            return False
    keys = [lane.key for lane in snapshot.lanes]
    keys += [task.lane for task in snapshot.waiting]
    return all(key.workspace is None for key in keys)


class KeptRound(Round):
    """A round that begins with what is kept, and leaves it so."""

    def __init__(self, kept: Kept, snapshot: Snapshot, policy: Policy, now: Instant) -> None:
        self.snapshot, self.policy, self.now = snapshot, policy, now
        self.ignores_room = False
        lanes, self.waiting = readiness.admit(snapshot, policy, now)
        self.lanes = tuple([lane for lane in lanes if lane.count])
        kept.follow(snapshot, self.lanes, now)
        self.kept, self.rules, self.ledger, self.order = kept, kept.rules, kept.ledger, kept.order
        self.workers = kept.workers
        self.stale, self.reclaims = {}, []
        self.reserved_locks, self.reserved_workspaces, self._preferred = {}, {}, {}
        self._find_resting()
        self.room = self._room()
        self.free = self.room.free
        self.share = Share(snapshot, policy, self._list_flights(), self._active())
        self.order.compare_by(self.share)
        if policy.share.mode == "virtual-time":
            self.share.arrive(self._present())
        self.batch_begun, self.batch_left = self._batch()

    def may_reserve(self) -> bool:
        """Whether an overdue task could wait for a lock: then something is reserved for it."""
        if self.policy.overdue.after is None:
            return False
        overdue = self.order.overdue
        return any(line.rules.locks and overdue(line.head) for line in self.kept.lanes.values())

    def in_full(self) -> Plan:
        """The whole plan."""
        picks = self._take()
        try:
            self._put_holders_in_order(picks)
            return conclude(self, picks, left_of(self.kept.lanes.values(), self.order))
        finally:
            self._put_back(picks)

    def in_short(self) -> Decided:
        """The plan without its words."""
        picks = self._take()
        try:
            holds = list(self._holds(picks))
        finally:
            self._put_back(picks)
        held: Counter[str] = Counter()
        for hold, count in holds:
            held[hold.code] += count
        left = len(holds) > len(self.waiting)
        until = wake_at(self, [hold for hold, _ in holds])
        plan = Plan(
            self.now, self.room, tuple(picks), (), (), reason_of(self, bool(picks), left), until,
            self.share.after(),
        )  # fmt: skip
        return Decided(plan, held)

    # How it begins.

    def _find_resting(self) -> None:
        """The pools that rest, and their probes."""
        pools = self.snapshot.pools.values()
        self.resting: dict[str, Pool] = {pool.name: pool for pool in pools if pool.hits}
        self.resting |= {pool.name: pool for pool in pools if (pool.until or 0) > self.now}
        self.ledger.probes = {}
        if self.resting:
            for flight in self.snapshot.in_flight:
                resting = self.resting.get(flight.lane.pool or "")
                if resting is not None:
                    self._probe(resting, flight)
        self.kept.rest(frozenset(self.resting))

    def _list_flights(self) -> list[Flight]:
        """What is in flight, where shares depend on it."""
        projects = self.snapshot.projects.values()
        if self.policy.share.mode != "deficit" and all(row.clock is not None for row in projects):
            return []
        return [
            Flight(
                flight.lane.project,
                self.estimate(self.kept.rules_of(flight.lane), flight.lease.estimate),
                flight.lease.used,
            )
            for flight in self.snapshot.in_flight
        ]

    def _active(self) -> frozenset[str]:
        return super()._active() if self.policy.share.mode == "deficit" else frozenset()

    def _present(self) -> frozenset[str]:
        present = set(self.kept.free_projects())
        self.ignores_room = True
        for rules in self.kept.bound():
            if rules.project not in present and self.first_hold(rules) is None:
                present.add(rules.project)
        self.ignores_room = False
        return frozenset(present)

    # How it ends.

    def _take(self) -> list[Pick]:
        if self.is_full():
            return []
        shelves = self.kept.shelves.values()
        picks = take_all(self, offers_of([[*shelf] for shelf in shelves], self.order))
        lines = self.kept.lanes
        short = short_of([lines[key] for key in dict.fromkeys(pick.lane for pick in picks)])
        if short:
            self._put_back(picks)
            raise WindowUsedUp(frozenset(short))
        return picks

    def _put_back(self, picks: list[Pick]) -> None:
        """A plan is a proposal: what is kept is as before."""
        for pick in picks:
            self.kept.leave(pick.task, self.kept.rules_of(pick.lane), pick.worker)
            self.kept.put_back(pick.lane)

    def _put_holders_in_order(self, picks: list[Pick]) -> None:
        """Holds name tasks in the order of the snapshot, then as they were picked."""
        tasks = [flight.task for flight in self.snapshot.in_flight]
        place = {task: at for at, task in enumerate([*tasks, *(pick.task for pick in picks)])}
        for listed in (*self.ledger.holders.values(), *self.ledger.slots.values()):
            listed.sort(key=place.__getitem__)

    def _holds(self, picks: list[Pick]) -> Iterator[tuple[Hold, int]]:
        """The hold of everything that is left, with its count."""
        taken = Counter(self.kept.rules_of(pick.lane) for pick in picks)
        free: LaneRules | None = None
        together = 0
        for rules, ready in self.kept.ready.items():
            left = ready - taken[rules]
            if not left:
                continue
            if self.kept.is_bound(rules):
                yield self.first_hold(rules) or batch_hold(self), left
            else:
                free, together = rules, together + left
        if free is not None:
            yield self.first_hold(free) or batch_hold(self), together
        for row in self.waiting:
            yield row.hold, row.count
