"""Round: what one planning round knows and has taken so far; both planners work on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeAlias

from fairlane.lifecycle.backoff import prove
from fairlane.lifecycle.transitions import counts_as, expired, status_after_loss
from fairlane.model.instant import Instant
from fairlane.model.plan import Hold, Pick, Reclaim, Room
from fairlane.model.project import Pool, Worker
from fairlane.model.record import NamedTuple
from fairlane.model.snapshot import InFlight, Snapshot
from fairlane.model.task import Entry, Lane, LaneKey, Outcome, Shape, shape_of
from fairlane.planner import readiness
from fairlane.planner.gates import GATES
from fairlane.planner.order import Flight, Order, Share
from fairlane.planner.rules import LaneRules, Rules
from fairlane.policy.policy import Policy

WorkspaceName = tuple[str, str]  # (project, workspace)
Probe = tuple[Instant, str]  # (start, task)
Tasks = dict[str, None]  # in the order in which they came


class Ledger:
    """What is in flight: by scope, locks, workspaces, slots, and tokens reserved."""

    __slots__ = (
        "_reserved", "holders", "locks", "probes", "slots", "tokens", "total", "usd", "workspaces",
    )  # fmt: skip

    def __init__(self) -> None:
        self.total = 0
        self.holders: defaultdict[str, Tasks] = defaultdict(dict)  # scope -> tasks in flight
        self.locks: dict[str, str] = {}  # lock -> task
        self.workspaces: dict[WorkspaceName, str] = {}  # workspace -> task
        self.slots: defaultdict[str, Tasks] = defaultdict(dict)  # worker -> tasks on it
        self._reserved: dict[str, tuple[tuple[str, ...], int, int]] = {}  # task -> its part
        self.tokens: dict[str, int] = {}  # scope -> tokens reserved
        self.usd: dict[str, int] = {}  # scope -> micro-dollars reserved
        self.probes: dict[str, list[Probe]] = {}  # unproved pool -> its probes

    def enter(self, task: str, scopes: tuple[str, ...], worker: str | None) -> None:
        """A task is in flight: it counts in every scope, and in its worker's slots."""
        self.total += 1
        holders = self.holders
        for scope in scopes:
            holders[scope][task] = None
        if worker is not None:
            self.slots[worker][task] = None

    def leave(self, task: str, scopes: tuple[str, ...], worker: str | None) -> None:
        """The opposite of `enter`."""
        self.total -= 1
        for scope in scopes:
            del self.holders[scope][task]
        if worker is not None:
            del self.slots[worker][task]

    def reserve(self, task: str, scopes: tuple[str, ...], tokens: int, usd: int) -> None:
        """Tokens and dollars that a task in flight may still use; in place of what it had."""
        self.release(task)
        self._reserved[task] = scopes, tokens, usd
        self._add(scopes, tokens, usd)

    def release(self, task: str) -> None:
        """It uses nothing more."""
        scopes, tokens, usd = self._reserved.pop(task, ((), 0, 0))
        self._add(scopes, -tokens, -usd)

    def _add(self, scopes: tuple[str, ...], tokens: int, usd: int) -> None:
        for scope in scopes:
            self.tokens[scope] = self.tokens.get(scope, 0) + tokens
            if usd:
                self.usd[scope] = self.usd.get(scope, 0) + usd


#: "No limit" where slots are compared.
_PLENTY = 1 << 40


class Workers:
    """The live workers; if there are none, one is assumed, by default with cap `all` as slots."""

    def __init__(
        self,
        workers: tuple[Worker, ...],
        cap_all: int | None,
        ledger: Ledger,
        assumed: Worker | None = None,
    ) -> None:
        self._ledger = ledger
        local = assumed or Worker("local")
        slots = cap_all if local.slots is None else local.slots
        self.everyone = workers
        living = [worker for worker in workers if worker.live]
        self.live = tuple(sorted(living, key=lambda worker: worker.name))
        self.assumed = not self.live
        if self.assumed:
            self.live = (Worker(local.name, slots, local.labels),)
        self._assumed_slots = _PLENTY if slots is None else slots
        #: The only one, if there is one.
        self._sole = self.live[0].name if len(self.live) == 1 else None
        self._fitting: dict[tuple[str, ...], tuple[Worker, ...]] = {}

    def fitting(self, labels: tuple[str, ...]) -> tuple[Worker, ...]:
        """The live workers that have all these labels."""
        workers = self._fitting.get(labels)
        if workers is None:
            needed = set(labels)
            workers = tuple(worker for worker in self.live if needed.issubset(worker.labels))
            self._fitting[labels] = workers
        return workers

    def free(self, worker: Worker) -> int:
        """Its free slots."""
        taken = self._ledger.total if self.assumed else len(self._ledger.slots.get(worker.name, ()))
        return max(0, (_PLENTY if worker.slots is None else worker.slots) - taken)

    def has_slot(self, labels: tuple[str, ...]) -> bool:
        """Whether a worker that fits has a free slot."""
        if self.assumed and not labels:
            return self._ledger.total < self._assumed_slots
        return any(map(self.free, self.fitting(labels)))

    def free_slots(self) -> int | None:
        """Free slots of all together; None: no limit."""
        if any(worker.slots is None for worker in self.live):
            return None
        return sum(self.free(worker) for worker in self.live)

    def holders(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """The tasks on the workers that have all these labels."""
        if self.assumed:
            return tuple(self._ledger.holders.get("all", ()))
        slots = (self._ledger.slots.get(worker.name, ()) for worker in self.fitting(labels))
        return tuple(chain.from_iterable(slots))

    def choose(self, labels: tuple[str, ...]) -> str:
        """Of those with a free slot: fewest labels it does not need, most free slots, the name."""
        if self._sole is not None:
            return self._sole
        fits = [worker for worker in self.fitting(labels) if self.free(worker) > 0]
        if len(fits) == 1:
            return fits[0].name
        needed = len(set(labels))
        best = min(
            fits,
            key=lambda worker: (len(set(worker.labels)) - needed, -self.free(worker), worker.name),
        )
        return best.name


Check: TypeAlias = Callable[[LaneRules, "Round"], Iterable[Hold]]


class Owner(NamedTuple):
    """The overdue task for which something is reserved."""

    lane: LaneRules
    task: str


class Round:
    """Ends what has expired, enters what is in flight, and then takes picks one by one."""

    def __init__(self, snapshot: Snapshot, policy: Policy, now: Instant) -> None:
        self.snapshot, self.policy, self.now = snapshot, policy, now
        self.ignores_room = False  # while it is asked who is present
        self.names_holders = True  # whether holds say who has what they wait for
        self.rules = Rules(snapshot, policy, now)
        self.ledger = Ledger()
        self.workers = Workers(
            snapshot.workers, policy.caps.get("all"), self.ledger, snapshot.assumed
        )
        self.resting = {pool.name: pool for pool in snapshot.pools.values() if pool.hits}
        self.resting |= {p.name: p for p in snapshot.pools.values() if (p.until or 0) > now}
        #: Workspaces that nobody may take yet, and until when.
        self.stale = {(stale.project, stale.name): stale.until for stale in snapshot.stale}
        for stale in snapshot.stale:
            self.ledger.workspaces[stale.project, stale.name] = stale.task
        self.reclaims: list[Reclaim] = []
        self._flights: list[Flight] = []
        for flight in snapshot.in_flight:
            if expired(flight, now):
                status = status_after_loss(flight, policy, flight.stop_requested)
                self.reclaims.append(Reclaim(flight.task, flight.lease.id, status))
            else:
                self._enter_in_flight(flight)
            pool = self.resting.get(flight.lane.pool or "")
            if pool is not None:
                self._probe(pool, flight)
        self.room = self._room()
        self.free = self.room.free  # counts down with every pick
        lanes, self.waiting = readiness.admit(snapshot, policy, now)
        self.lanes = tuple([lane for lane in lanes if lane.count])
        self._preferred: dict[tuple[str, str], int] = {}
        self._count_preferences()
        self.share = Share(snapshot, policy, self._flights, self._active())
        self.order = Order(policy, now, self.share)
        self.reserved_locks: dict[str, Owner] = {}
        self.reserved_workspaces: dict[tuple[str, str], Owner] = {}
        if policy.overdue.after is not None:
            self._reserve_for_overdue()
        if policy.share.mode == "virtual-time":
            self.share.arrive(self._present())
        self.batch_begun, self.batch_left = self._batch()

    # What gates and planners ask.

    def first_hold(self, lane: LaneRules) -> Hold | None:
        """The first hold of a lane; None: it may start."""
        for check in lane.checks or self._checks(lane):
            holds = check(lane, self)
            if holds:  # what passes gives an empty tuple where this is asked most
                for hold in holds:
                    return hold
        return None

    def all_holds(self, lane: LaneRules) -> list[Hold]:
        """Every hold of a lane, in the order of the gates."""
        return [hold for check in self._checks(lane) for hold in check(lane, self)]

    def _checks(self, lane: LaneRules) -> tuple[Check, ...]:
        """The gates that concern a lane, in their order; kept with its rules."""
        lane.checks = tuple([gate.check for gate in GATES if gate.concerns(lane, self)])
        return lane.checks

    def _room(self) -> Room:
        """Room under cap `all` and in the slots, the smaller; None: no limit."""
        cap = self.policy.caps.get("all")
        bounds = [self.workers.free_slots(), None if cap is None else cap - self.ledger.total]
        free = min((bound for bound in bounds if bound is not None), default=None)
        return Room(cap, self.ledger.total, None if free is None else max(0, free))

    def is_full(self) -> bool:
        """Whether nothing more may start, whatever it is."""
        return self.batch_left == 0 or self.free == 0

    def estimate(self, lane: LaneRules, guess: int | None) -> int:
        """Tokens that an attempt of this lane will use."""
        return lane.estimate(guess, self.policy.share.default_estimate)

    def free_workspaces(self, lane: LaneRules) -> list[str]:
        """The workspaces of its project that it may take, best first."""
        names = self.snapshot.projects[lane.project].workspaces or ()
        free = [name for name in names if self._is_free(lane, name)]
        return sorted(free, key=lambda name: (self._preferred.get((lane.project, name), 0), name))

    def take(self, lane: LaneKey, rules: LaneRules, entry: Entry) -> Pick:
        """Pick this task: everything that it takes is entered at once."""
        worker = self.workers.choose(rules.labels)
        workspace = self._workspace_for(rules)
        estimate = self.estimate(rules, entry.estimate)
        numbers = self.share.numbers(rules.project)
        self._enter(entry.task, rules, worker, workspace, estimate)
        if self.free is not None:
            self.free -= 1
        if rules.pool in self.resting:
            self.ledger.probes.setdefault(rules.pool, []).append((self.now, entry.task))
        self.share.take(rules.project, estimate)
        if self.batch_left is not None:
            self.batch_left -= 1
        score = self.order.score(lane, entry)
        return Pick(entry.task, lane, worker, workspace, estimate, score, numbers)

    # How a round begins.

    def _enter_in_flight(self, flight: InFlight) -> None:
        lease = flight.lease
        rules = self.rules.of(shape_of(flight.lane))
        estimate = self.estimate(rules, lease.estimate)
        left = max(0, estimate - lease.used)
        self._enter(flight.task, rules, lease.worker, flight.workspace, left)
        self._flights.append(Flight(flight.lane.project, estimate, lease.used))

    def _probe(self, pool: Pool, flight: InFlight) -> None:
        """A probe has proved its pool healthy, or the others wait for it.

        What is leased and has not started yet will begin after the cooldown: it is a probe too.
        What this plan ends proves as much as its end will, and nobody waits for it.
        """
        begun = self.now if flight.lease.started_at is None else flight.lease.started_at
        if begun < (pool.until or 0) or (pool.until or 0) > self.now:
            return
        ends = expired(flight, self.now)
        outcome = counts_as(Outcome.LOST, flight.stop_requested) if ends else None
        if not prove(pool, begun, outcome, used=flight.lease.used, ran=self.now - begun).hits:
            del self.resting[pool.name]
        elif not ends:
            self.ledger.probes.setdefault(pool.name, []).append((begun, flight.task))

    def _enter(
        self, task: str, lane: LaneRules, worker: str | None, workspace: str | None, tokens: int
    ) -> None:
        self.ledger.enter(task, lane.scopes, worker)
        for lock in lane.locks:
            self.ledger.locks.setdefault(lock, task)
        if workspace is not None:
            self.ledger.workspaces[lane.project, workspace] = task
        if self.rules.budgets:
            self.ledger.reserve(task, lane.scopes, tokens, lane.cost_of(tokens))

    def _count_preferences(self) -> None:
        for lane in self.lanes:
            if lane.key.workspace is not None:
                place = (lane.key.project, lane.key.workspace)
                self._preferred[place] = self._preferred.get(place, 0) + lane.count

    def _active(self) -> frozenset[str]:
        """The active projects that have ready work, held or not."""
        names = {lane.key.project for lane in self.lanes if lane.count}
        paused = self.rules.pauses
        return frozenset(name for name in names if f"project:{name}" not in paused)

    def _present(self) -> frozenset[str]:
        """The projects of which a lane passes every gate but cap `all`, free slots and batch."""
        self.ignores_room = True
        present: set[str] = set()
        asked: set[Shape] = set()
        for lane in self.lanes:
            shape = lane.shape
            if shape.project not in present and shape not in asked:
                asked.add(shape)
                if self.first_hold(self.rules.of(shape)) is None:
                    present.add(shape.project)
        self.ignores_room = False
        return frozenset(present)

    def _reserve_for_overdue(self) -> None:
        """What the oldest overdue lane of each project waits for, if only locks or workspaces."""
        age_from = self.policy.score.age_from
        heads = [(lane, lane.in_order(age_from)[0]) for lane in self.lanes]
        heads = [pair for pair in heads if self.order.overdue(pair[1])]
        heads.sort(key=lambda pair: (self.order.since(pair[1]), pair[1].seq))
        first: dict[str, tuple[Lane, int]] = {}
        startable: list[LaneRules] = []  # overdue lanes that nothing holds, oldest first
        asked: set[Shape] = set()
        for lane, _ in heads:
            shape = lane.shape
            if shape not in asked:
                asked.add(shape)
                rules = self.rules.of(shape)
                gates = {hold.gate for hold in self.all_holds(rules)}
                if not gates:
                    startable.append(rules)
                elif shape.project not in first and gates <= {"locks", "workspace"}:
                    first[shape.project] = (lane, len(startable))
        for lane, older in first.values():
            self._reserve(lane, startable[:older])

    def _reserve(self, lane: Lane, older: list[LaneRules]) -> None:
        """Reserve for this lane, except what an older overdue lane can take now."""
        rules = self.rules.set_apart(lane.key, lane.shape)
        owner = Owner(rules, lane.in_order(self.policy.score.age_from)[0].task)
        workspace = self._workspace_for(rules)
        theirs = [other.workspace for other in older if other.project == rules.project]
        if workspace is not None and workspace not in theirs and None not in theirs:
            self.reserved_workspaces[rules.project, workspace] = owner
        wanted = {lock for other in older for lock in other.locks}
        for lock in rules.locks:
            if lock not in wanted:
                self.reserved_locks.setdefault(lock, owner)

    def _workspace_for(self, lane: LaneRules) -> str | None:
        """The workspace that a task of this lane takes: its own, or the one that fewest prefer."""
        if lane.workspace is not None or self.snapshot.projects[lane.project].workspaces is None:
            return lane.workspace
        return next(iter(self.free_workspaces(lane)), None)

    def _is_free(self, lane: LaneRules, name: str) -> bool:
        place = (lane.project, name)
        owner = self.reserved_workspaces.get(place)
        return place not in self.ledger.workspaces and (owner is None or owner.lane is lane)

    def _batch(self) -> tuple[Instant, int | None]:
        """When the interval of the batch began, and how many more may start in it."""
        batch, since = self.policy.capacity.batch, self.snapshot.batch_since
        if since is not None and self.now >= since + self.policy.cycle.interval:
            return self.now, batch
        left = None if batch is None else max(0, batch - self.snapshot.batch_started)
        return (self.now if since is None else since), left
