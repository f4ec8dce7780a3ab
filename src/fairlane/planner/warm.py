"""The warm planner: for whoever plans again and again; the same plans as `lanes`, sooner.

It keeps what planning reads and what did not change since the last round: the ledger of what is
in flight, the rules of lanes, their ranks, who is present. What changed it finds by itself: parts
of a snapshot that are the very objects of the last one have not changed. Of what is in flight it
can be told what has moved since it planned last, so that it does not look at all of it. Where a
snapshot has something that is not kept, the lane planner makes the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from fairlane.model.instant import Instant
from fairlane.model.plan import Clocks, Decided, Held, Hold, Pick, Plan, decided, in_short
from fairlane.model.project import Pool
from fairlane.model.snapshot import Snapshot, WaitCount
from fairlane.model.task import Lane
from fairlane.planner import lanes as lane_planner
from fairlane.planner import readiness
from fairlane.planner.conclude import batch_hold, conclude, earliest, reason_of
from fairlane.planner.flying import Doubled, Moved, Proposed
from fairlane.planner.kept import Kept
from fairlane.planner.lanes import WindowUsedUp, left_of, offers_of, short_of, take_all
from fairlane.planner.order import Flight, Share
from fairlane.planner.round import Round
from fairlane.planner.rules import LaneRules
from fairlane.policy.policy import Policy

T = TypeVar("T")


class WarmPlanner:
    """Plans one queue, round after round."""

    def __init__(self) -> None:
        self._kept: Kept | None = None
        #: What was decided last: of what, the round, and its plan once it is known in full.
        self._decided_of: Snapshot | None = None
        self._decided_at: tuple[Policy, Instant] | None = None
        self._round: KeptRound | None = None
        self._whole: Plan | None = None
        self._waits: tuple[tuple[WaitCount, ...], tuple[Held, ...]] = (), ()
        self._lanes: tuple[tuple[Lane, ...], tuple[Lane, ...]] = (), ()

    def plan(
        self, snapshot: Snapshot, policy: Policy, now: Instant, moved: Moved | None = None
    ) -> Plan:
        """What to start now, and why the rest waits."""
        round = self._begin(snapshot, policy, now, moved)
        if round is None:
            return lane_planner.plan(snapshot, policy, now)
        return self._keep(round, round.in_full)

    def decide(
        self, snapshot: Snapshot, policy: Policy, now: Instant, moved: Moved | None = None
    ) -> Decided:
        """What to start now."""
        round = self._begin(snapshot, policy, now, moved)
        if round is None:
            self._whole = lane_planner.plan(snapshot, policy, now)
            self._decided_of = snapshot
            return decided(self._whole)
        short = self._keep(round, round.in_short)
        self._round, self._decided_of = round, snapshot
        return short

    def in_full(self, snapshot: Snapshot, policy: Policy, now: Instant) -> Plan:
        """The plan that was decided; the holds are named only now."""
        if self._decided_of is not snapshot or self._decided_at != (policy, now):
            return lane_planner.plan(snapshot, policy, now)  # others have planned since
        if self._whole is None and self._round is not None:
            self._whole = self._round.concluded()
        assert self._whole is not None
        return self._whole

    def _begin(
        self, snapshot: Snapshot, policy: Policy, now: Instant, moved: Moved | None = None
    ) -> KeptRound | None:
        """A round on what is kept; None: there is something in it that is not kept."""
        self._decided_of = self._round = self._whole = None
        self._decided_at = policy, now
        kept, self._kept = self._kept, None  # whoever is interrupted begins anew
        if snapshot.stale:
            return None
        lanes, waiting = self._admit(snapshot, policy, now)
        try:
            if kept is None or not kept.fits(snapshot, policy):
                kept, moved = Kept(snapshot, policy, now), {}
            kept.follow(snapshot, lanes, now, moved)
        except Doubled:
            return None
        if not kept.suffices(now):
            self._kept = kept
            return None
        return KeptRound(kept, snapshot, now, waiting)

    def _keep(self, round: KeptRound, say: Callable[[], T]) -> T:
        """What a round says; what it rests on is kept when it has ended."""
        try:
            said = say()
        except WindowUsedUp:
            self._kept = round.kept
            raise
        self._kept = round.kept
        return said

    def _admit(
        self, snapshot: Snapshot, policy: Policy, now: Instant
    ) -> tuple[tuple[Lane, ...], tuple[Held, ...]]:
        """The lanes with ready tasks, and what waits; counted again when counts have changed."""
        if snapshot.waiting or snapshot.wait_counts is not self._waits[0]:
            lanes, waiting = readiness.admit(snapshot, policy, now)
            if snapshot.waiting:
                return tuple([lane for lane in lanes if lane.count]), waiting
            self._waits = snapshot.wait_counts, waiting
        if snapshot.lanes is not self._lanes[0]:
            self._lanes = snapshot.lanes, tuple([lane for lane in snapshot.lanes if lane.count])
        return self._lanes[1], self._waits[1]


class KeptRound(Round):
    """A round that begins with what is kept."""

    def __init__(
        self, kept: Kept, snapshot: Snapshot, now: Instant, waiting: tuple[Held, ...]
    ) -> None:
        self.snapshot, self.policy, self.now, self.waiting = snapshot, kept.policy, now, waiting
        self.kept, self.rules, self.ledger, self.order = kept, kept.rules, kept.ledger, kept.order
        self.lanes = tuple([line.lane for line in kept.lanes.values()])
        self.workers, self.ignores_room, self.names_holders = kept.workers, False, False
        self.stale, self.reclaims = {}, []
        self.reserved_locks, self.reserved_workspaces = {}, {}
        self._preferred = kept.preferred
        self.picks: list[Pick] = []
        self._shared = False  # whether it was found whose turn it is
        self._find_resting()
        self.room = self._room()
        self.free = self.room.free
        self.batch_begun, self.batch_left = self._batch()

    def in_full(self) -> Plan:
        """The whole plan."""
        self.picks = self._take()
        return self.concluded()

    def concluded(self) -> Plan:
        """The whole plan, where its picks were taken."""
        if not self._shared:
            self._find_share()
        self.names_holders = True
        self._put_holders_in_order(self.picks)
        return conclude(self, self.picks, left_of(self.kept.lanes.values(), self.order))

    def in_short(self) -> Decided:
        """The plan without its words; and without clocks, where nothing starts."""
        picks = self.picks = self._take()
        holds = list(self._holds(picks))
        left = len(holds) > len(self.waiting)
        until = earliest(self, [hold for hold, _ in holds], self.kept.flying.first_expiry())
        clocks = self.share.after() if picks else Clocks()
        reason = reason_of(self, bool(picks), left)
        plan = Plan(self.now, self.room, tuple(picks), (), (), reason, until, clocks)
        return in_short(plan, holds)

    # How it begins.

    def _find_resting(self) -> None:
        """The pools that rest, and their probes."""
        pools = self.snapshot.pools.values()
        self.resting: dict[str, Pool] = {pool.name: pool for pool in pools if pool.hits}
        self.resting |= {pool.name: pool for pool in pools if (pool.until or 0) > self.now}
        self.ledger.probes = {}
        if self.resting:
            for flight in self.kept.flying.in_pools(self.resting):
                resting = self.resting.get(flight.lane.pool or "")
                if resting is not None:
                    self._probe(resting, flight)
        self.kept.rest(frozenset(self.resting))

    def _find_share(self) -> None:
        """Whose turn it is; asked only where something may start."""
        self._shared = True
        self.share = Share(self.snapshot, self.policy, self._list_flights(), self._active())
        self.order.compare_by(self.share)
        if self.policy.share.mode == "virtual-time":
            self.share.arrive(self._present())

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
        present = self.kept.free_projects()
        if not self.kept.bound:
            return present
        others: set[str] = set()
        self.ignores_room = True
        for rules in self.kept.bound:
            name = rules.project
            if name not in present and name not in others and self.first_hold(rules) is None:
                others.add(name)
        self.ignores_room = False
        return present | others

    # How it ends.

    def _take(self) -> list[Pick]:
        """The picks; they stay proposed."""
        if not self.lanes or self.is_full():
            return []
        self._find_share()
        shelves = self.kept.shelves.values()
        picks = take_all(self, offers_of([[*shelf] for shelf in shelves], self.order))
        self.kept.proposed = [
            Proposed(pick.task, (pick.lane, pick.worker, pick.workspace)) for pick in picks
        ]
        lines = self.kept.lanes
        short = short_of([lines[key] for key in dict.fromkeys(pick.lane for pick in picks)])
        if short:
            raise WindowUsedUp(frozenset(short))
        return picks

    def _put_holders_in_order(self, picks: list[Pick]) -> None:
        """Holds name tasks in the order of the snapshot, then as they were picked."""
        tasks = [flight.task for flight in self.snapshot.in_flight]
        place = {task: at for at, task in enumerate([*tasks, *(pick.task for pick in picks)])}
        for table in (self.ledger.holders, self.ledger.slots):
            for name, held in table.items():
                table[name] = dict.fromkeys(sorted(held, key=place.__getitem__))

    def _holds(self, picks: list[Pick]) -> Iterator[tuple[Hold, int]]:
        """The hold of everything that is left, with its count."""
        unbound, taken = self.kept.unbound, dict[LaneRules, int]()
        for pick in picks:
            rules = self.kept.rules_of(pick.lane)
            if rules in self.kept.bound:
                taken[rules] = taken.get(rules, 0) + 1
            else:
                unbound -= 1
        for rules, ready in self.kept.bound.items():
            if ready > taken.get(rules, 0):
                hold = self.first_hold(rules) or batch_hold(self)
                yield hold, ready - taken.get(rules, 0)
        if unbound:
            # Where only the room can hold them, all have the same hold.
            some = next(rules for rules in self.kept.ready if rules not in self.kept.bound)
            yield self.first_hold(some) or batch_hold(self), unbound
        for row in self.waiting:
            yield row.hold, row.count
