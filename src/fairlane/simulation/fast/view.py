"""View: the snapshot of one worker's rounds, kept from round to round."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import cast

from fairlane.engine.context import Context, Facts
from fairlane.engine.liveness import STALE
from fairlane.engine.snapshot import (
    WINDOW,
    WINDOW_GROWTH,
    Asker,
    assumed_worker,
    budgets_spent,
    counts_usage,
    flight_of,
    half_opens_at,
    stale_seen,
    standing_of,
    workers_for,
)
from fairlane.model.instant import Instant, minute_of
from fairlane.model.project import Group, History, Pause, Pool, Project, Small, SmallRow
from fairlane.model.record import changed
from fairlane.model.snapshot import InFlight, Snapshot, StaleWorkspace
from fairlane.model.task import Lane, LaneKey
from fairlane.planner.lanes import WindowUsedUp
from fairlane.planner.warm import Decided, WarmPlanner
from fairlane.policy.policy import Policy
from fairlane.simulation.fast.memory import WatchedMemory
from fairlane.store.memory.usage import Amounts


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
                snapshot = changed(snapshot, lanes=tuple(self._lanes.values()))

    def look(self, policy: Policy, now: Instant) -> Snapshot:
        """The snapshot, as `engine.snapshot.look` has it."""
        if policy is not self._policy:
            self.close()
            self._begin_anew()
            self._policy = policy
        self._read_lanes(self._news.lanes, WINDOW)
        self._news.lanes.clear()
        self._read_flights(now)
        memory, context, asker = self._memory, self._context, self._asker
        projects = self._rows(Project)
        waits, batch = memory.wait_counts(), memory.value("batch") or {}
        workers = workers_for(context, memory, policy, now, self._in_flight, asker)
        return Snapshot(
            lanes=tuple(self._lanes.values()),
            in_flight=self._in_flight,
            wait_counts=waits,
            projects=self._standing(projects, now),
            pools=self._rows(Pool),
            workers=workers,
            paused=tuple(self._rows(Pause).values()),
            usage=budgets_spent(memory, projects, policy, now),
            history=tuple(self._rows(History).values()),
            groups={name: group.parent for name, group in self._rows(Group).items()},
            clock=memory.value("clock") or 0,
            batch_started=batch.get("started", 0),
            batch_since=batch.get("since"),
            agents=context.settings.known_agents(),
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
        self._flights: dict[str, InFlight] = {}
        self._in_order: list[tuple[int, str]] = []  # tasks in flight by seq
        self._in_flight: tuple[InFlight, ...] = ()
        self._tables: dict[type[SmallRow], tuple[int, object]] = {}
        self._stands: dict[str, tuple[Project, Amounts | None, Project]] = {}

    def _read_lanes(self, keys: set[LaneKey], window: int) -> None:
        if keys:
            assert self._policy is not None
            age_from = self._policy.score.age_from
            found = {lane.key: lane for lane in self._memory.lanes(age_from, window, keys)}
            for key in keys:
                if key not in found:
                    self._lanes.pop(key, None)
            self._lanes |= found

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
        """A small table; read again when it has changed."""
        changes = self._memory.changes_of(kind)
        known = self._tables.get(kind)
        if known is None or known[0] != changes:
            known = self._tables[kind] = changes, self._memory.table(kind)
        return cast("dict[str, Small]", known[1])

    def _standing(self, projects: dict[str, Project], now: Instant) -> dict[str, Project]:
        """Projects with what they used, started and completed in the share window."""
        policy = self._policy
        assert policy is not None
        if not counts_usage(policy):
            return projects
        since = minute_of(now - policy.share.window)
        standing = {}
        for name, project in projects.items():
            total = self._memory.total(f"project:{name}", since)
            known = self._stands.get(name)
            if known is None or known[0] is not project or known[1] is not total:
                row = project
                if total is not None:
                    row = standing_of(project, policy, total[:4], total[5], total[6])
                known = self._stands[name] = project, total, row
            standing[name] = known[2]
        return standing

    def _stale(self, now: Instant) -> tuple[StaleWorkspace, ...]:
        if not self._memory.value(STALE) and not any(e.workspace for e in self._in_flight):
            return ()
        attempts = self._memory.open_attempts()
        assert self._policy is not None
        return stale_seen(self._memory, attempts, self._policy, now)
