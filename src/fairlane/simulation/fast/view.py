"""View: the snapshot of one worker's rounds, kept from round to round."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import cast

from fairlane.engine.context import Context, Facts
from fairlane.engine.liveness import STALE, stale_workspaces
from fairlane.engine.look.flights import flight_of
from fairlane.engine.look.lanes import WINDOW, WINDOW_GROWTH
from fairlane.engine.look.usage import Budgets, counts_usage, standing_of
from fairlane.engine.look.view import half_opens_at
from fairlane.engine.look.workers import Asker, assumed_worker, workers_for
from fairlane.model.instant import Instant, minute_of
from fairlane.model.plan import Decided
from fairlane.model.project import (
    Group,
    History,
    Pause,
    Pool,
    Project,
    Small,
    SmallRow,
    Usage,
    Worker,
    WorkerRow,
)
from fairlane.model.record import changed
from fairlane.model.snapshot import InFlight, Snapshot, StaleWorkspace
from fairlane.model.task import Lane, LaneKey
from fairlane.planner.lanes import WindowUsedUp
from fairlane.planner.warm import WarmPlanner
from fairlane.policy.policy import Policy
from fairlane.simulation.fast.memory import WatchedMemory

#: Later than everything.
_FOREVER: Instant = 1 << 62


class View:
    """What rounds read, brought up to date by what has changed since the last one."""

    def __init__(self, context: Context, memory: WatchedMemory, asker: Asker | None) -> None:
        self._context, self._memory, self._asker = context, memory, asker
        self._planner = WarmPlanner()
        self._policy: Policy | None = None
        self._begin_anew()

    def decide(self, policy: Policy, now: Instant) -> tuple[Snapshot, Decided]:
        """What to start now, and what that was decided from."""
        snapshot, wider = self.look(policy, now), WINDOW
        while True:
            try:
                return snapshot, self._planner.decide(snapshot, policy, now)
            except WindowUsedUp as short:
                wider *= WINDOW_GROWTH
                self._read_lanes(set(short.lanes), wider)
                snapshot = changed(snapshot, lanes=self._in_lanes)

    def look(self, policy: Policy, now: Instant) -> Snapshot:
        """The snapshot, as `engine.look` has it."""
        if policy is not self._policy:
            self.close()
            self._begin_anew()
            self._policy = policy
        self._read_lanes(self._news.lanes, WINDOW)
        self._news.lanes.clear()
        self._read_flights(now)
        memory, context = self._memory, self._context
        projects = self._rows(Project)
        waits, batch = memory.wait_counts(), memory.value("batch") or {}
        workers = self._workers(policy, now)
        return Snapshot(
            lanes=self._in_lanes,
            in_flight=self._in_flight,
            wait_counts=waits,
            projects=self._standing(projects, now),
            pools=self._rows(Pool),
            workers=workers,
            paused=tuple(self._rows(Pause).values()),
            usage=self._budgets_spent(projects, now),
            history=tuple(self._rows(History).values()),
            groups={name: group.parent for name, group in self._rows(Group).items()},
            clock=memory.value("clock") or 0,
            batch_started=batch.get("started", 0),
            batch_since=batch.get("since"),
            agents=self._agents(),
            half_open_at=half_opens_at(memory, waits),
            stale=self._stale(now),
            assumed=None if any(row.live for row in workers) else assumed_worker(context, policy),
        )

    def close(self) -> None:
        """Nobody looks any more."""
        self._memory.forget(self._news)

    # Inside

    def _begin_anew(self) -> None:
        self._news = self._memory.watch()
        self._lanes: dict[LaneKey, Lane] = {}
        self._in_lanes: tuple[Lane, ...] = ()
        self._flights: dict[str, InFlight] = {}
        self._in_order: list[tuple[int, str]] = []  # tasks in flight by seq
        self._in_flight: tuple[InFlight, ...] = ()
        self._placed: list[InFlight] = []  # those in a workspace
        self._tables: dict[type[SmallRow], tuple[int, object]] = {}
        #: Projects as they are, with what they used, and their scope.
        self._stands: dict[str, tuple[Project, Project, str]] = {}
        self._stood: tuple[dict[str, Project], dict[str, Project]] = {}, {}
        self._sums_from, self._sums_until = _FOREVER, -_FOREVER
        self._crew: tuple[object, tuple[Worker, ...]] | None = None
        self._known_agents: tuple[object, tuple[str, ...]] | None = None
        self._budgeted: tuple[object, bool] | None = None

    def _read_lanes(self, keys: set[LaneKey], window: int) -> None:
        if keys:
            assert self._policy is not None
            age_from = self._policy.score.age_from
            found = {lane.key: lane for lane in self._memory.lanes(age_from, window, keys)}
            for key in keys:
                if key not in found:
                    self._lanes.pop(key, None)
            self._lanes |= found
            self._in_lanes = tuple(self._lanes.values())

    def _read_flights(self, now: Instant) -> None:
        if not self._news.flights:
            return
        names, self._news.flights = self._news.flights, set()
        for name in names:
            known = self._flights.pop(name, None)
            flight = self._flight(name, now)
            if known is not None and flight is None:
                del self._in_order[bisect_left(self._in_order, (known.seq, name))]
            if flight is not None:
                self._flights[name] = flight
                if known is None:
                    insort(self._in_order, (flight.seq, name))
        self._in_flight = tuple([self._flights[name] for _, name in self._in_order])
        self._placed = [each for each in self._in_flight if each.workspace is not None]

    def _flight(self, name: str, now: Instant) -> InFlight | None:
        attempt = self._memory.open_attempt(name)
        task = None if attempt is None else self._memory.task(name)
        if attempt is None or task is None or not task.status.in_flight:
            return None
        assert self._policy is not None
        if attempt.handle is None:  # whether it counts as alive depends on the time
            self._news.flights.add(name)
        return flight_of(task, attempt, self._policy, Facts().alive(attempt, now))

    def _rows(self, kind: type[Small]) -> dict[str, Small]:
        """A small table: the same object until it changes."""
        changes = self._memory.changes_of(kind)
        known = self._tables.get(kind)
        if known is None or known[0] != changes:
            known = self._tables[kind] = changes, self._memory.table(kind)
        return cast("dict[str, Small]", known[1])

    def _agents(self) -> tuple[str, ...]:
        settings = self._context.settings
        if self._known_agents is None or self._known_agents[0] is not settings:
            self._known_agents = settings, settings.known_agents()
        return self._known_agents[1]

    def _budgets_spent(self, projects: dict[str, Project], now: Instant) -> tuple[Usage, ...]:
        """What was spent of budgets, where there are any."""
        policy = self._policy
        assert policy is not None
        if self._budgeted is None or self._budgeted[0] is not projects:
            own = policy.budget or [row for row in projects.values() if row.budgets]
            self._budgeted = projects, bool(own)
        return Budgets().spent(self._memory, projects, policy, now) if self._budgeted[1] else ()

    def _workers(self, policy: Policy, now: Instant) -> tuple[Worker, ...]:
        """The workers; one that asks itself is the same until its row or its settings change."""
        stamp = self._memory.changes_of(WorkerRow), self._context.settings
        if self._asker is None or self._crew is None or self._crew[0] != stamp:
            rows = workers_for(self._context, self._memory, policy, now, {}, self._asker)
            self._crew = stamp, rows
        return self._crew[1]

    def _standing(self, projects: dict[str, Project], now: Instant) -> dict[str, Project]:
        """Projects with what they used, started and completed in the share window."""
        policy, scopes = self._policy, self._news.scopes
        assert policy is not None
        if not counts_usage(policy):
            return projects
        since = minute_of(now - policy.share.window)
        moved = not self._sums_from <= since <= self._sums_until
        if not moved and not scopes and projects is self._stood[0]:
            return self._stood[1]
        standing: dict[str, Project] = {}
        for name, project in projects.items():
            known = self._stands.get(name)
            if known is None or known[0] is not project or moved or known[2] in scopes:
                scope = f"project:{name}"
                known = self._stands[name] = project, self._stand(project, scope, since), scope
            standing[name] = known[1]
        until = self._first_minute(
            since, [row[2] for row in self._stands.values()] if moved else scopes
        )
        self._sums_until = until if moved else min(self._sums_until, until)
        self._sums_from, self._stood = since, (projects, standing)
        scopes.clear()
        return standing

    def _stand(self, project: Project, scope: str, since: Instant) -> Project:
        account = self._memory.account(scope)
        total = None if account is None else account.total(since)
        if total is None or self._policy is None:
            return project
        return standing_of(project, self._policy, total[:4], total[5], total[6])

    def _first_minute(self, since: Instant, scopes: Iterable[str]) -> Instant:
        """Until when the same minutes are in the window, if nothing more is booked."""
        accounts = [self._memory.account(scope) for scope in scopes]
        firsts = [account.first(since) for account in accounts if account is not None]
        return min((first for first in firsts if first is not None), default=_FOREVER)

    def _stale(self, now: Instant) -> tuple[StaleWorkspace, ...]:
        if not self._memory.value(STALE) and not self._placed:
            return ()
        attempts = [row for row in self._memory.open_attempts() if row.workspace is not None]
        assert self._policy is not None
        return stale_workspaces(self._memory, attempts, self._policy, now)
