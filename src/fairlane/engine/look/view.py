"""View: everything that planning reads from the store; heads of lanes, never the queue.

It is kept from round to round, and reads only what the store's news names. A new one reads all:
so the plan of a command and that of a daemon are made in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from fairlane.engine.context import Context, Facts
from fairlane.engine.liveness import STALE, stale_workspaces
from fairlane.engine.look.flights import Flights
from fairlane.engine.look.lanes import Lanes
from fairlane.engine.look.usage import Budgets, Projects, Standing
from fairlane.engine.look.workers import Asker, assumed_worker, workers_for
from fairlane.model.instant import Instant
from fairlane.model.project import Group, History, Pause, Pool, Project, Small, SmallRow
from fairlane.model.record import replace
from fairlane.model.snapshot import Snapshot, StaleWorkspace, WaitCount
from fairlane.model.task import Attempt, Lane, LaneKey
from fairlane.policy.policy import Policy
from fairlane.settings import Settings
from fairlane.store.base import Reading, Store
from fairlane.store.news import NEVER, News

if TYPE_CHECKING:
    from fairlane.planner.warm import WarmPlanner

#: What is made of a small table for planning.
_OF: dict[type[SmallRow], Callable[[dict[str, Any]], Any]] = {
    Pause: lambda rows: tuple(rows.values()),
    History: lambda rows: tuple(rows.values()),
    Group: lambda rows: {name: group.parent for name, group in rows.items()},
}


class View:
    """What rounds read of one store, and the planner that keeps what it made of it."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store
        self._begin_anew(None)

    def _begin_anew(self, policy: Policy | None) -> None:
        self._policy, self._mark = policy, NEVER
        self._planner: WarmPlanner | None = None
        self.flights = Flights()
        self._lanes = Lanes("" if policy is None else policy.score.age_from)
        self._waits: tuple[tuple[WaitCount, ...], Instant | None] | None = None
        self._tables: dict[type[SmallRow], tuple[Any, Any]] = {}  # rows, and what is made of them
        self._standing, self._budgets = Standing(), Budgets()
        self._placed: tuple[Projects, Settings, Projects] | None = None
        self._agents: tuple[Settings, tuple[str, ...]] | None = None

    @property
    def planner(self) -> WarmPlanner:
        """Who plans from round to round; loaded where there is more than one round."""
        if self._planner is None:
            from fairlane.planner.warm import WarmPlanner

            self._planner = WarmPlanner()
        return self._planner

    def follow(self, reading: Reading, policy: Policy) -> None:
        """Read what has changed, in a transaction; all of it, if nobody knows what."""
        news = reading.news(self._mark)
        self._mark = NEVER  # whoever is interrupted begins anew
        if news.anything or not (policy is self._policy or policy == self._policy):
            self._begin_anew(policy)
            self.flights.read(reading, policy, None)
        else:
            self._read(reading, policy, news)
        self._mark = news.mark

    def _read(self, reading: Reading, policy: Policy, news: News) -> None:
        self._lanes.read(reading, news.lanes)
        if news.flights:
            self.flights.read(reading, policy, news.flights)
        if news.waits:
            self._waits = None
        for kind in [kind for kind in self._tables if kind.__name__ in news.tables]:
            del self._tables[kind]
        self._standing.book(reading, news.scopes)
        self._budgets.book(news.scopes)

    def look(
        self,
        context: Context,
        reading: Reading,
        now: Instant,
        facts: Facts,
        asker: Asker | None,
        window: int,
    ) -> tuple[Snapshot, int]:
        """The snapshot as of the last `follow`, and how many tasks of each lane it has."""
        policy = self._policy
        assert policy is not None
        self.flights.judge(facts, now)
        projects = self._projects(context, reading)
        waits, half_open_at = self._waits_of(reading)
        workers = workers_for(context, reading, policy, now, self.flights.on_worker, asker)
        batch = reading.value("batch") or {}
        lanes = self._lanes.heads(reading, window)
        wide = self._lanes.width(lanes, window, None if asker is None else asker.limit)
        snapshot = Snapshot(
            lanes=lanes if wide == window else self._lanes.heads(reading, wide),
            in_flight=self.flights.in_order(),
            wait_counts=waits,
            projects=self._standing.of(reading, projects, policy, now),
            pools=self._rows(reading, Pool),
            workers=workers,
            paused=self._made(reading, Pause),
            usage=self._budgets.spent(reading, projects, policy, now),
            history=self._made(reading, History),
            groups=self._made(reading, Group),
            clock=reading.value("clock") or 0,
            batch_started=batch.get("started", 0),
            batch_since=batch.get("since"),
            agents=self._known_agents(context.settings),
            half_open_at=half_open_at,
            stale=self._stale(reading, now),
            assumed=None if any(row.live for row in workers) else assumed_worker(context, policy),
        )
        return snapshot, wide

    def wider(self, reading: Reading, keys: Iterable[LaneKey], window: int) -> dict[LaneKey, Lane]:
        """More tasks of these lanes, for one round."""
        assert self._policy is not None
        return {lane.key: lane for lane in reading.lanes(self._policy.score.age_from, window, keys)}

    def expired(self, now: Instant) -> list[Attempt]:
        """The attempts whose lease is over."""
        return self.flights.expired(now)

    # Inside

    def _rows(self, reading: Reading, kind: type[Small]) -> dict[str, Small]:
        """A small table: the same object until it changes."""
        known = self._tables.get(kind)
        if known is None:
            rows = reading.table(kind)
            make = _OF.get(kind)
            known = self._tables[kind] = rows, None if make is None else make(rows)
        return cast("dict[str, Small]", known[0])

    def _made(self, reading: Reading, kind: type[Small]) -> Any:
        """The same in the form of a snapshot."""
        self._rows(reading, kind)
        return self._tables[kind][1]

    def _projects(self, context: Context, reading: Reading) -> Projects:
        """Projects whose attempts work in the repository itself have that one workspace."""
        rows, settings = self._rows(reading, Project), context.settings
        if settings.workspaces.mode != "shared":
            return rows
        known = self._placed
        if known is None or known[0] is not rows or known[1] is not settings:
            from fairlane.workspaces import SHARED, is_shared

            placed = {
                name: replace(row, workspaces=(SHARED,)) if is_shared(settings, row) else row
                for name, row in rows.items()
            }
            known = self._placed = rows, settings, placed
        return known[2]

    def _known_agents(self, settings: Settings) -> tuple[str, ...]:
        if self._agents is None or self._agents[0] is not settings:
            self._agents = settings, settings.known_agents()
        return self._agents[1]

    def _waits_of(self, reading: Reading) -> tuple[tuple[WaitCount, ...], Instant | None]:
        if self._waits is None:
            waits = reading.wait_counts()
            self._waits = waits, half_opens_at(reading, waits)
        return self._waits

    def _stale(self, reading: Reading, now: Instant) -> tuple[StaleWorkspace, ...]:
        lost = [attempt for attempt in self.expired(now) if attempt.workspace is not None]
        if not lost and not reading.value(STALE):
            return ()
        assert self._policy is not None
        return stale_workspaces(reading, lost, self._policy, now)


def view_of(context: Context) -> View:
    """The view of a context: it stays from round to round."""
    if context.view is None or context.view.store is not context.store:
        context.view = View(context.store)
    return context.view


def half_opens_at(reading: Reading, waits: tuple[WaitCount, ...]) -> Instant | None:
    """The first timer of all, where it is that of a parked task: no wait ends so early."""
    due = reading.next_due()
    ends = [count.until for count in waits if count.until is not None]
    return due if due is not None and due < min(ends, default=due + 1) else None
