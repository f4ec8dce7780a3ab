"""Snapshot: everything that planning reads from the store; heads of lanes, never the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypedDict

from fairlane.engine.context import Context, Facts, follows_policy, slot_limit
from fairlane.engine.liveness import STALE, observe, stale_workspaces
from fairlane.lifecycle import usage as windows
from fairlane.model.instant import Instant, minute_of
from fairlane.model.plan import Plan
from fairlane.model.project import (
    Budget,
    Group,
    History,
    Pause,
    Pool,
    Project,
    Tokens,
    Usage,
    Worker,
    WorkerRow,
    counted,
)
from fairlane.model.record import changed, dataclass
from fairlane.model.snapshot import InFlight, Snapshot, StaleWorkspace, WaitCount
from fairlane.model.task import Attempt, Lane, LaneKey, Task
from fairlane.planner import lanes as planner
from fairlane.policy.policy import Policy
from fairlane.settings import host_name
from fairlane.store.base import Reading
from fairlane.store.news import Mark

#: How many tasks of a lane are read at first, and how many times more where they are used up.
WINDOW = 8
WINDOW_GROWTH = 16
#: Where there are few lanes, more of each are read: at most this many tasks together.
ENTRIES = 2_000


@dataclass(frozen=True, slots=True)
class Asker:
    """A worker that asks for work itself: only it gets what is planned, at most `limit`."""

    worker: str
    limit: int | None = None
    executor: str = "none"  # none: it runs the attempts itself, and heartbeats keep them
    host: str | None = None
    direct: bool = False  # started by `add` itself, whatever the caps say
    labels: tuple[str, ...] = ()  # none: those it had

    def row(self, reading: Reading, now: Instant) -> WorkerRow | None:
        """The worker as a round has it; one that runs attempts itself is new at its first."""
        row = reading.table(WorkerRow).get(self.worker)
        if self.executor != "none":
            return row
        row = row or WorkerRow(self.worker, host_name())
        return changed(row, labels=self.labels or row.labels, seen_at=now)


class LastCycle(TypedDict):
    """What the last round did."""

    at: Instant
    picks: int
    reclaims: int
    refused: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """What was seen, the plan made of it, and the lanes of which more had to be read."""

    policy: Policy
    now: Instant
    mark: Mark  # of the store; everything that it has was seen
    snapshot: Snapshot
    plan: Plan
    attempts: dict[str, Attempt]  # open, by task
    widened: frozenset[LaneKey]
    asker: Asker | None = None
    alone: bool = False  # of some tasks only, not of the whole queue
    window: int = WINDOW  # how many tasks of every other lane were read
    facts: Facts = Facts()


def look_and_plan(
    context: Context,
    reading: Reading,
    policy: Policy,
    now: Instant,
    asker: Asker | None = None,
    window: int = WINDOW,
    facts: Facts | None = None,
    open_attempts: list[Attempt] | None = None,
) -> PlannedRound:
    """Look, then plan; a plan that used up a lane's window is made again with a larger one.

    Without `facts` it only previews: processes and files are looked at here, and the plan is that
    of a round which has brought in first what has arrived. `open_attempts`: where they were read.
    """
    ahead = facts is None
    if asker is not None and asker.limit is not None:
        window = min(window + 1, max(0, asker.limit) + 1)  # one more than can be taken
    rows = reading.open_attempts() if open_attempts is None else open_attempts
    attempts = {attempt.task: attempt for attempt in rows}
    facts = observe(context, attempts.values()) if facts is None else facts
    snapshot = look(context, reading, policy, now, attempts, facts, asker, window)
    wide = _wide(snapshot.lanes, window, asker)
    if wide > window:
        window = wide
        snapshot = replace(snapshot, lanes=reading.lanes(policy.score.age_from, window))
    if ahead and _may_arrive(reading, now, snapshot):
        from fairlane.engine.round import with_arrivals

        snapshot = with_arrivals(context, reading, policy, now, snapshot)
    widened: set[LaneKey] = set()
    wider = window
    while True:
        try:
            plan = planner.plan(snapshot, policy, now)
            return PlannedRound(
                policy, now, reading.mark(), snapshot, plan, attempts, frozenset(widened), asker,
                window=window, facts=facts,
            )  # fmt: skip
        except planner.WindowUsedUp as short:
            wider *= WINDOW_GROWTH
            widened |= short.lanes
            snapshot = replace(snapshot, lanes=_wider(snapshot, reading, policy, widened, wider))


def _wide(lanes: tuple[Lane, ...], window: int, asker: Asker | None) -> int:
    """How many tasks of each lane to read: where there are few lanes, all that may be taken."""
    if not any(lane.count > window for lane in lanes):
        return window
    wide = min(ENTRIES // len(lanes), window * WINDOW_GROWTH)
    return wide if asker is None or asker.limit is None else min(wide, asker.limit + 1)


def _may_arrive(reading: Reading, now: Instant, snapshot: Snapshot) -> bool:
    """Whether a timer has passed, or somebody waits for a file that may be there."""
    due = reading.next_due()
    passed = due is not None and due <= now
    return passed or any(count.code == "artifact" for count in snapshot.wait_counts)


def preview(context: Context, reading: Reading) -> tuple[Snapshot, Plan, Policy]:
    """The plan that a round would make now; changes nothing."""
    policy = context.policy_for_reading(reading)
    planned = look_and_plan(context, reading, policy, context.now())
    return planned.snapshot, planned.plan, policy


def last_cycle(reading: Reading) -> LastCycle | None:
    """What the last round that did something did."""
    cycle: LastCycle | None = reading.value("last_cycle")
    return cycle


def look(
    context: Context,
    reading: Reading,
    policy: Policy,
    now: Instant,
    attempts: dict[str, Attempt],
    facts: Facts,
    asker: Asker | None = None,
    window: int = WINDOW,
) -> Snapshot:
    """The snapshot that planning reads."""
    projects = reading.table(Project)
    batch = reading.value("batch") or {}
    flying = _in_flight(reading, policy, now, attempts, facts)
    waits = reading.wait_counts()
    workers = workers_for(context, reading, policy, now, flying, asker)
    return Snapshot(
        lanes=reading.lanes(policy.score.age_from, window),
        in_flight=flying,
        wait_counts=waits,
        projects=_standing(reading, _placed(context, projects), policy, now),
        pools=reading.table(Pool),
        workers=workers,
        paused=tuple(reading.table(Pause).values()),
        usage=budgets_spent(reading, projects, policy, now),
        history=tuple(reading.table(History).values()),
        groups={name: group.parent for name, group in reading.table(Group).items()},
        clock=reading.value("clock") or 0,
        batch_started=batch.get("started", 0),
        batch_since=batch.get("since"),
        agents=context.settings.known_agents(),
        half_open_at=half_opens_at(reading, waits),
        stale=stale_seen(reading, attempts.values(), policy, now),
        assumed=None if any(worker.live for worker in workers) else assumed_worker(context, policy),
    )


def half_opens_at(reading: Reading, waits: tuple[WaitCount, ...]) -> Instant | None:
    """The first timer of all, where it is that of a parked task: no wait ends so early."""
    due = reading.next_due()
    ends = [count.until for count in waits if count.until is not None]
    return due if due is not None and due < min(ends, default=due + 1) else None


def _wider(
    snapshot: Snapshot, reading: Reading, policy: Policy, keys: set[LaneKey], window: int
) -> tuple[Lane, ...]:
    age_from = policy.score.age_from
    wider = {lane.key: lane for lane in reading.lanes(age_from, window, keys)}
    return tuple(wider.get(lane.key, lane) for lane in snapshot.lanes)


def _in_flight(
    reading: Reading,
    policy: Policy,
    now: Instant,
    attempts: dict[str, Attempt],
    facts: Facts,
) -> tuple[InFlight, ...]:
    flying = []
    for task in reading.in_flight() if attempts else ():
        attempt = attempts[task.id]
        flying.append(flight_of(task, attempt, policy, facts.alive(attempt, now)))
    return tuple(flying)


def flight_of(task: Task, attempt: Attempt, policy: Policy, alive: bool) -> InFlight:
    """A task in flight as planning sees it."""
    assert task.lease is not None
    used = counted(attempt.tokens, policy.usage.count)
    return InFlight(
        task=task.id,
        seq=task.seq,
        lane=task.lane,
        lease=changed(task.lease, used=used, alive=alive),
        status=task.status,
        workspace=attempt.workspace,
        max_attempts=task.max_attempts,
        launch_failures=task.launch_failures,
        stop_requested=task.stop_requested,
    )


def stale_seen(
    reading: Reading, attempts: Iterable[Attempt], policy: Policy, now: Instant
) -> tuple[StaleWorkspace, ...]:
    in_workspaces = [attempt for attempt in attempts if attempt.workspace is not None]
    if not in_workspaces and not reading.value(STALE):
        return ()
    return stale_workspaces(reading, in_workspaces, policy, now)


def _placed(context: Context, projects: dict[str, Project]) -> dict[str, Project]:
    """Projects whose attempts work in the repository itself have that one workspace."""
    if context.settings.workspaces.mode != "shared":
        return projects
    from fairlane.workspaces import SHARED, is_shared

    return {
        name: replace(row, workspaces=(SHARED,)) if is_shared(context.settings, row) else row
        for name, row in projects.items()
    }


def _standing(
    reading: Reading, projects: dict[str, Project], policy: Policy, now: Instant
) -> dict[str, Project]:
    """Projects with what they used, started and completed in the share window."""
    if not counts_usage(policy):
        return projects
    since = minute_of(now - policy.share.window)
    sums = reading.usage_sums("project:", since)
    standing = dict(projects)
    for name, project in projects.items():
        booked = sums.get(f"project:{name}")
        if booked is not None:
            counts = booked.tokens, booked.starts, booked.completions
            standing[name] = standing_of(project, policy, *counts)
    return standing


def counts_usage(policy: Policy) -> bool:
    """Whether a plan depends on what projects used, started and completed."""
    needs_counts = "guarantee" in policy.order and policy.share.guarantee > 0
    return policy.share.mode == "deficit" or needs_counts


def standing_of(
    project: Project, policy: Policy, tokens: Sequence[int], starts: int, completions: int
) -> Project:
    """A project with what it did in the share window."""
    used = counted(tokens, policy.usage.count)
    return changed(project, tokens=used, starts=starts, completions=completions)


def workers_for(
    context: Context,
    reading: Reading,
    policy: Policy,
    now: Instant,
    flying: tuple[InFlight, ...],
    asker: Asker | None,
) -> tuple[Worker, ...]:
    if asker is None:
        rows = list(reading.table(WorkerRow).values())
    else:
        rows = [row for row in [asker.row(reading, now)] if row is not None]
    workers = []
    for row in rows:
        live = now - row.seen_at < policy.lease.ttl
        slots = row.slots
        if follows_policy(context.settings, row):
            slots = slot_limit(context.settings, policy)
        if asker is not None and asker.limit is not None:
            asked = sum(attempt.lease.worker == row.name for attempt in flying) + asker.limit
            slots = asked if slots is None else min(slots, asked)
        workers.append(Worker(row.name, slots, row.labels, live or asker is not None))
    return tuple(workers)


def assumed_worker(context: Context, policy: Policy) -> Worker:
    """Where nobody lives: this machine's worker, as the next daemon would have it."""
    return Worker("local", slot_limit(context.settings, policy), context.settings.worker.labels)


def budgets_spent(
    reading: Reading, projects: dict[str, Project], policy: Policy, now: Instant
) -> tuple[Usage, ...]:
    """What was spent of every budget, and when it frees."""
    budgets = {(rule.scope, rule.window): rule for rule in policy.budget}
    for project in projects.values():
        budgets |= {(rule.scope, rule.window): rule for rule in project.budgets}
    return tuple(_spent(reading, budget, policy, now) for budget in budgets.values())


def _spent(reading: Reading, budget: Budget, policy: Policy, now: Instant) -> Usage:
    bookings = reading.usage(budget.scope, windows.window_start(budget.window, now))
    buckets = [
        (booking.minute, counted(Tokens(*booking.tokens), policy.usage.count), booking.usd)
        for booking in bookings
    ]
    tokens, usd = windows.spent(buckets, budget.window, now)
    limit, spent = (budget.tokens, tokens) if budget.tokens is not None else (budget.usd, usd)
    near = spent * 2 >= (limit or 0)
    leaves = windows.leaves(buckets, budget.window, now) if near else ()
    return Usage(budget.scope, budget.window, tokens, usd, leaves)
