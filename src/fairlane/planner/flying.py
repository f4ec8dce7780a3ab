"""Flying: what is in flight, entered into a ledger once and taken out when it ends."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TypeAlias

from fairlane.model.instant import Instant
from fairlane.model.record import NamedTuple
from fairlane.model.snapshot import InFlight
from fairlane.model.task import LaneKey
from fairlane.planner.round import Ledger
from fairlane.planner.rules import LaneRules
from fairlane.policy.policy import Policy

#: What has moved since the last plan, by task: as it flies now; None: it has landed.
Moved: TypeAlias = Mapping[str, InFlight | None]
#: Where a task in flight counts: its lane, worker and workspace.
FlightPlace: TypeAlias = tuple[LaneKey, str | None, str | None]
#: Of which attempts history tells: project, kind, agent.
HistoryPlace: TypeAlias = tuple[str, str, str | None]


class Doubled(Exception):
    """Two tasks have one lock or workspace: nobody could tell whose it is when one ends."""


class Proposed(NamedTuple):
    """A pick; whether it was carried out shows in what has moved since."""

    task: str
    place: FlightPlace


class Flying:
    """What is in flight; the ledger follows it."""

    def __init__(
        self,
        rules_of: Callable[[LaneKey], LaneRules],
        ledger: Ledger,
        policy: Policy,
        reserves: bool,
    ) -> None:
        self._rules_of, self._ledger, self._policy = rules_of, ledger, policy
        self._reserves = reserves  # whether there are budgets
        self._flights: dict[str, InFlight] = {}
        self._of_pool: dict[str, dict[str, InFlight]] = {}
        self._of_history: dict[HistoryPlace, dict[str, InFlight]] = {}
        #: Leases that nobody keeps alive, by task, and all of them by when they expire.
        self._expires: dict[str, Instant] = {}
        self._expiries: list[tuple[Instant, str]] = []

    def first_expiry(self) -> list[Instant]:
        """When the first lease expires that nobody keeps alive, if there is any."""
        return [at for at, _ in self._expiries[:1]]

    def in_pools(self, pools: Iterable[str]) -> list[InFlight]:
        """What is in flight in these pools, by seq."""
        flights = [self._of_pool[pool].values() for pool in pools if pool in self._of_pool]
        return sorted(chain.from_iterable(flights), key=attrgetter("seq"))

    def find_moved(self, in_flight: tuple[InFlight, ...]) -> Moved:
        """What flies otherwise than it did; nobody said what."""
        moved: dict[str, InFlight | None] = {
            flight.task: flight
            for flight in in_flight
            if self._flights.get(flight.task) is not flight
        }
        flying = {flight.task for flight in in_flight}
        return moved | dict.fromkeys(self._flights.keys() - flying)

    def follow(self, moved: Moved, proposed: Sequence[Proposed]) -> None:
        """What was picked has started as it was picked, or it is as before; the rest has moved."""
        for task, place in proposed:
            flight = moved.get(task)
            if flight is not None and _place(flight) == place:
                self._keep(flight)
            else:
                self._leave(task, place)
        for task in [task for task, flight in moved.items() if flight is None]:
            if task in self._flights:  # before others take off: they may take its locks
                self._land(self._flights[task])
        for flight in filter(None, moved.values()):
            before = self._flights.get(flight.task)
            if before is flight:
                continue
            if before is not None and _place(before) != _place(flight):
                self._land(before)
                before = None
            if before is None:
                self._take_off(flight)
            self._keep(flight)

    def reserve_again(self, places: Iterable[HistoryPlace]) -> None:
        """History tells something else of these attempts."""
        for place in places:
            for flight in self._of_history.get(place, {}).values():
                self._reserve(flight)

    # Inside

    def _take_off(self, flight: InFlight) -> None:
        rules, ledger = self._rules_of(flight.lane), self._ledger
        ledger.enter(flight.task, rules.scopes, flight.lease.worker)
        if flight.workspace is not None:
            place = (rules.project, flight.workspace)
            if ledger.workspaces.setdefault(place, flight.task) != flight.task:
                raise Doubled(flight.workspace)
        for lock in rules.locks:
            if ledger.locks.setdefault(lock, flight.task) != flight.task:
                raise Doubled(lock)

    def _keep(self, flight: InFlight) -> None:
        """A task in flight as it is now."""
        lane = flight.lane
        self._flights[flight.task] = flight
        if lane.pool is not None:
            self._of_pool.setdefault(lane.pool, {})[flight.task] = flight
        if self._reserves:
            place = (lane.project, lane.kind, lane.agent)
            self._of_history.setdefault(place, {})[flight.task] = flight
            self._reserve(flight)
        self._forget_expiry(flight.task)
        at = flight.lease.expires_at
        if at is not None and not flight.lease.alive:
            self._expires[flight.task] = at
            insort(self._expiries, (at, flight.task))

    def _reserve(self, flight: InFlight) -> None:
        """What it may still use of budgets."""
        rules, lease = self._rules_of(flight.lane), flight.lease
        estimate = rules.estimate(lease.estimate, self._policy.share.default_estimate)
        tokens = max(0, estimate - lease.used)
        self._ledger.reserve(flight.task, rules.scopes, tokens, rules.cost_of(tokens))

    def _land(self, flight: InFlight) -> None:
        lane = flight.lane
        self._leave(flight.task, _place(flight))
        self._forget_expiry(flight.task)
        del self._flights[flight.task]
        if lane.pool is not None:
            del self._of_pool[lane.pool][flight.task]
        if self._reserves:
            del self._of_history[lane.project, lane.kind, lane.agent][flight.task]

    def _leave(self, task: str, place: FlightPlace) -> None:
        """A task is no longer in flight there."""
        key, worker, workspace = place
        rules, ledger = self._rules_of(key), self._ledger
        ledger.leave(task, rules.scopes, worker)
        ledger.release(task)
        if workspace is not None:
            del ledger.workspaces[rules.project, workspace]
        for lock in rules.locks:
            del ledger.locks[lock]

    def _forget_expiry(self, task: str) -> None:
        at = self._expires.pop(task, None)
        if at is not None:
            del self._expiries[bisect_left(self._expiries, (at, task))]


def _place(flight: InFlight) -> FlightPlace:
    return flight.lane, flight.lease.worker, flight.workspace
