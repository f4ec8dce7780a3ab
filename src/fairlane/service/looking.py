"""Looking: everything that planning reads, out of the store; lanes and heads, never the queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlane.lifecycle import usage as windows
from fairlane.lifecycle.usage import Tokens, counted
from fairlane.model.instant import Instant
from fairlane.model.lane import Lane, LaneKey
from fairlane.model.plan import Plan
from fairlane.model.project import Budget, Project
from fairlane.model.record import dataclass
from fairlane.model.resources import Usage, Worker
from fairlane.model.snapshot import InFlight, Snapshot, WaitCount
from fairlane.planner import lanes as planner
from fairlane.policy.policy import Policy
from fairlane.service.alive import outlives_lease, revoke_expired
from fairlane.service.desk import Desk
from fairlane.service.slots import follows_policy, slot_limit
from fairlane.store.base import Attempt, Reading

#: How many tasks of a lane are read at first, and how many times more where they are used up.
WINDOW = 8
WINDOW_GROWTH = 16
#: Of a few lanes more are read at once, up to so many tasks together.
ENTRIES = 2_000


@dataclass(frozen=True, slots=True)
class Asker:
    """A worker that asks for work itself: only it gets what is planned, at most `limit`."""

    worker: str
    limit: int | None = None
    executor: str = "none"  # none: it runs the attempts itself, and heartbeats keep them
    host: str | None = None
    direct: bool = False  # started by `add` itself, whatever the caps say


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen, the plan made of it, and the lanes of which more had to be read."""

    snapshot: Snapshot
    plan: Plan
    attempts: dict[str, Attempt]  # open, by task
    widened: frozenset[LaneKey]
    asker: Asker | None = None
    alone: bool = False  # of some tasks only, not of the whole queue
    window: int = WINDOW  # how many tasks of each lane were read, but for those lanes


def look_and_plan(
    desk: Desk,
    reading: Reading,
    policy: Policy,
    now: Instant,
    asker: Asker | None = None,
    window: int = WINDOW,
    ahead: bool = False,
) -> Seen:
    """Look, then plan; a plan that used up a lane's window is made again with a larger one.

    `ahead`: with what a round would bring in first, for those who may not write.
    """
    if asker is not None and asker.limit is not None:
        window = min(window + 1, max(0, asker.limit) + 1)  # one more than can be taken
    attempts = {attempt.task: attempt for attempt in reading.open_attempts()}
    if not ahead:
        revoke_expired(desk.home, attempts.values(), now)
    snapshot = look(desk, reading, policy, now, attempts, asker, window)
    wide = _wide(snapshot.lanes, window, asker)
    if wide > window:
        window = wide
        snapshot = replace(snapshot, lanes=reading.lanes(policy.score.age_from, window))
    if ahead and _may_arrive(reading, now, snapshot):
        from fairlane.service.arriving import with_arrivals

        snapshot = with_arrivals(desk, reading, policy, now, snapshot)
    widened: set[LaneKey] = set()
    wider = window
    while True:
        try:
            plan = planner.plan(snapshot, policy, now)
            return Seen(snapshot, plan, attempts, frozenset(widened), asker, window=window)
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
    return passed or any(each.code == "artifact" for each in snapshot.wait_counts)


def preview(desk: Desk, reading: Reading) -> tuple[Snapshot, Plan, Policy]:
    """The plan that a round would make now; changes nothing."""
    policy = desk.policy_for_reading(reading)
    seen = look_and_plan(desk, reading, policy, desk.now(), ahead=True)
    return seen.snapshot, seen.plan, policy


def last_cycle(reading: Reading) -> dict[str, Any] | None:
    """What the last round that did something did."""
    found: dict[str, Any] | None = reading.value("last_cycle")
    return found


def look(
    desk: Desk,
    reading: Reading,
    policy: Policy,
    now: Instant,
    attempts: dict[str, Attempt],
    asker: Asker | None = None,
    window: int = WINDOW,
) -> Snapshot:
    """The snapshot that planning reads."""
    projects = reading.projects()
    batch = reading.value("batch") or {}
    flying = _in_flight(desk, reading, policy, attempts)
    waits = reading.wait_counts()
    workers = _workers(desk, reading, policy, now, flying, asker)
    return Snapshot(
        lanes=reading.lanes(policy.score.age_from, window),
        in_flight=flying,
        wait_counts=waits,
        projects=_standing(reading, _placed(desk, projects), policy, now),
        pools=reading.pools(),
        workers=workers,
        paused=tuple(reading.pauses()),
        usage=_usage(reading, projects, policy, now),
        history=tuple(reading.history()),
        groups={name: group.parent for name, group in reading.groups().items()},
        clock=reading.value("clock") or 0,
        batch_started=batch.get("started", 0),
        batch_since=batch.get("since"),
        agents=desk.settings.known_agents(),
        half_open_at=_half_open_at(reading, waits),
        assumed=None if any(each.live for each in workers) else _assumed(desk, policy),
    )


def _half_open_at(reading: Reading, waits: tuple[WaitCount, ...]) -> Instant | None:
    """The first timer of all, where it is that of a parked task: no wait ends so early."""
    due = reading.next_due()
    ends = [each.until for each in waits if each.until is not None]
    return due if due is not None and due < min(ends, default=due + 1) else None


def _wider(
    snapshot: Snapshot, reading: Reading, policy: Policy, keys: set[LaneKey], window: int
) -> tuple[Lane, ...]:
    age_from = policy.score.age_from
    wider = {key: reading.lane(key, age_from, window) for key in keys}
    return tuple(wider.get(lane.key) or lane for lane in snapshot.lanes)


def _in_flight(
    desk: Desk, reading: Reading, policy: Policy, attempts: dict[str, Attempt]
) -> tuple[InFlight, ...]:
    found = []
    for task in reading.in_flight() if attempts else ():
        attempt = attempts[task.id]
        used = counted(Tokens(*attempt.tokens), policy.usage.count)
        lease = task.lease
        assert lease is not None
        found.append(
            InFlight(
                task=task.id,
                seq=task.seq,
                lane=task.lane,
                lease=replace(lease, used=used, alive=outlives_lease(desk.home, attempt)),
                status=task.status,
                workspace=attempt.workspace,
                max_attempts=task.max_attempts,
                launch_failures=task.launch_failures,
                stop_requested=task.stop_requested,
            )
        )
    return tuple(found)


def _placed(desk: Desk, projects: dict[str, Project]) -> dict[str, Project]:
    """Projects whose attempts work in the repository itself have that one workspace."""
    if desk.settings.workspaces.mode != "shared":
        return projects
    from fairlane.workspaces import SHARED, is_shared

    return {
        name: replace(each, workspaces=(SHARED,)) if is_shared(desk.settings, each) else each
        for name, each in projects.items()
    }


def _standing(
    reading: Reading, projects: dict[str, Project], policy: Policy, now: Instant
) -> dict[str, Project]:
    """Projects with what they used, started and completed in the share window."""
    needs_counts = "guarantee" in policy.order and policy.share.guarantee > 0
    if policy.share.mode != "deficit" and not needs_counts:
        return projects
    since = windows.minute_of(now - policy.share.window)
    sums = reading.usage_sums("project:", since)
    found = dict(projects)
    for name, project in projects.items():
        booked = sums.get(f"project:{name}")
        if booked is not None:
            found[name] = replace(
                project,
                tokens=counted(Tokens(*booked.tokens), policy.usage.count),
                starts=booked.starts,
                completions=booked.completions,
            )
    return found


def _workers(
    desk: Desk,
    reading: Reading,
    policy: Policy,
    now: Instant,
    flying: tuple[InFlight, ...],
    asker: Asker | None,
) -> tuple[Worker, ...]:
    rows = reading.workers()
    if asker is not None:
        rows = [row for row in rows if row.name == asker.worker]
    found = []
    for row in rows:
        live = now - row.seen_at < policy.lease.ttl
        slots = row.slots
        if follows_policy(desk.settings, row):
            slots = slot_limit(desk.settings, policy)
        if asker is not None and asker.limit is not None:
            asked = sum(each.lease.worker == row.name for each in flying) + asker.limit
            slots = asked if slots is None else min(slots, asked)
        found.append(Worker(row.name, slots, row.labels, live or asker is not None))
    return tuple(found)


def _assumed(desk: Desk, policy: Policy) -> Worker:
    """Where nobody lives: this machine's worker, as the next daemon would have it."""
    return Worker("local", slot_limit(desk.settings, policy), desk.settings.worker.labels)


def _usage(
    reading: Reading, projects: dict[str, Project], policy: Policy, now: Instant
) -> tuple[Usage, ...]:
    """What was spent of every budget, and when it frees."""
    budgets = {(each.scope, each.window): each for each in policy.budget}
    for project in projects.values():
        budgets |= {(each.scope, each.window): each for each in project.budgets}
    return tuple(_spent(reading, budget, policy, now) for budget in budgets.values())


def _spent(reading: Reading, budget: Budget, policy: Policy, now: Instant) -> Usage:
    bookings = reading.usage(budget.scope, windows.window_start(budget.window, now))
    buckets = [
        (each.minute, counted(Tokens(*each.tokens), policy.usage.count), each.usd)
        for each in bookings
    ]
    tokens, usd = windows.spent(buckets, budget.window, now)
    limit, spent = (budget.tokens, tokens) if budget.tokens is not None else (budget.usd, usd)
    near = spent * 2 >= (limit or 0)
    leaves = windows.leaves(buckets, budget.window, now) if near else ()
    return Usage(budget.scope, budget.window, tokens, usd, leaves)
