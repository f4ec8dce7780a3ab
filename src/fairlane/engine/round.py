"""Rounds: look and plan, then commit; a lease is durable before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlane.engine import decisions
from fairlane.engine.checks import checks_of
from fairlane.engine.context import Context, Facts, direct_slots, expired_here
from fairlane.engine.end_attempt import end_attempt
from fairlane.engine.liveness import gather
from fairlane.engine.look.lanes import WINDOW
from fairlane.engine.look.planned import LastCycle, PlannedRound, look_and_plan
from fairlane.engine.look.view import view_of
from fairlane.engine.look.workers import Asker
from fairlane.engine.task_changes import (
    TaskChanges,
    bring_in,
    follow_policy,
    has_other_rules,
    ready_at,
)
from fairlane.engine.usage import Books
from fairlane.intake.routing import artifact_exists
from fairlane.lifecycle.backoff import half_open_at
from fairlane.lifecycle.step import step
from fairlane.model.event import Happening
from fairlane.model.instant import SECOND, Instant
from fairlane.model.plan import Decided, Pick, Plan, decided
from fairlane.model.project import Project
from fairlane.model.record import NamedTuple, changed, dataclass, replace
from fairlane.model.snapshot import Snapshot, WaitCount, Waiting, waits_of
from fairlane.model.task import Attempt, Entry, LaneKey, Lease, Status, Task, lane_of
from fairlane.planner import lanes
from fairlane.policy.policy import Policy
from fairlane.store.base import Filter, Placed, Reading, Writing
from fairlane.store.news import Mark

#: How many tasks are brought in at most, and how many timers are looked at beyond them.
ARRIVALS_MAX, TIMERS_SEEN = 10_000, 50
#: How many tasks that wait for artifacts are looked at in one round.
LOOKED_AT_MAX = 1000
_FOREVER: Instant = 1 << 62


def with_arrivals(
    context: Context, reading: Reading, policy: Policy, now: Instant, snapshot: Snapshot
) -> Snapshot:
    """The snapshot after timers have passed and artifacts have appeared; nothing is written."""
    due = reading.due(now, ARRIVALS_MAX)
    appeared = appeared_now(files_waited_for(context, reading))
    if not due and not appeared:
        return snapshot
    tasks = {placed.task.id: placed.task for placed in due} | appeared
    opened = [_opened(task, policy, now) for task in tasks.values()]
    ready = [
        task if task.ready_since is not None else ready_at(task, now)
        for task in opened
        if task.status is Status.QUEUED
    ]
    named = {name for task in ready for name in (*task.needs, task.parent or "") if name}
    statuses = reading.statuses(named) if named else {}
    waiting = tuple(waits_of(task, statuses) or Waiting(task.lane, task.entry) for task in ready)
    codes = {placed.task.id: placed.wait for placed in due} | dict.fromkeys(appeared, "artifact")
    later = reading.due(_FOREVER, len(due) + TIMERS_SEEN)[len(due) :]
    counts = _without(snapshot.wait_counts, codes, later)
    opens_at = next((placed.due_at for placed in later if not placed.wait), None)
    return replace(snapshot, waiting=waiting, wait_counts=counts, half_open_at=opens_at)


def _opened(task: Task, policy: Policy, now: Instant) -> Task:
    """A parked task whose half-open time has come is queued once more."""
    opens_at = half_open_at(task, policy) if task.status is Status.PARKED else None
    if opens_at is None or opens_at > now:
        return task
    return step(task, Happening.HALF_OPEN, policy, now).task


def _without(
    counts: tuple[WaitCount, ...], codes: dict[str, str], later: list[Placed]
) -> tuple[WaitCount, ...]:
    """The counts without the tasks that the snapshot has one by one."""
    counts_left = []
    for wait in counts:
        gone = sum(code == wait.code for code in codes.values())
        until = next((placed.due_at for placed in later if placed.wait == wait.code), None)
        left = tuple(name for name in wait.tasks if name not in codes)
        if not gone:
            counts_left.append(wait)
        elif wait.count > gone:
            counts_left.append(WaitCount(wait.code, wait.count - gone, left, until))
    return tuple(counts_left)


# Artifacts


class WaitsForFiles(NamedTuple):
    """A task, and the folder in which its artifacts will be."""

    task: Task
    folder: Path | None


def files_waited_for(context: Context, reading: Reading) -> list[WaitsForFiles]:
    """Tasks that wait for artifacts; of many, each round looks at the next ones."""
    waiting, after = Filter(wait="artifact"), context.artifacts_after
    rows = reading.listing(waiting, after, LOOKED_AT_MAX)
    if after and len(rows) < LOOKED_AT_MAX:
        first = reading.listing(waiting, 0, LOOKED_AT_MAX - len(rows))
        rows += [row for row in first if row.task.seq <= after]
    context.artifacts_after = rows[-1].task.seq if len(rows) == LOOKED_AT_MAX else 0
    projects = reading.table(Project) if rows else {}
    return [WaitsForFiles(row.task, _folder(context, projects, row.task)) for row in rows]


def appeared_now(waiting: list[WaitsForFiles]) -> dict[str, Task]:
    """Those of which other artifacts are missing than before, as they are now; reads files."""
    tasks: dict[str, Task] = {}
    for task, folder in waiting:
        still = _missing(folder, task.artifacts)
        if still != task.artifacts_missing:
            tasks[task.id] = replace(task, artifacts_missing=still)
    return tasks


def notice(changes: TaskChanges, appeared: dict[str, Task]) -> None:
    """Tasks whose artifacts have appeared no longer wait for them, unless they changed since."""
    for task in changes.tx.tasks(appeared).values():
        now = appeared[task.id]
        if task.status is Status.QUEUED and task.artifacts == now.artifacts:
            changes.keep(replace(task, artifacts_missing=now.artifacts_missing))
    changes.close()


def _folder(context: Context, projects: dict[str, Project], task: Task) -> Path | None:
    """Where a task's artifacts are: its parent's folder, or its project's repository."""
    if task.parent is not None:
        return context.home / "artifacts" / task.parent
    project = projects.get(task.project)
    return Path(project.repo) if project and project.repo else None


def _missing(folder: Path | None, artifacts: tuple[str, ...]) -> tuple[str, ...]:
    """Those that do not exist, or lie outside their folder once links are followed."""
    return tuple(name for name in artifacts if not artifact_exists(folder, name))


#: A plan that waited longer for its turn is made again.
PLAN_LASTS = SECOND


@dataclass(frozen=True, slots=True)
class Committed:
    """What a round started, and what was refused because it had changed meanwhile."""

    decided: Decided
    started: tuple[tuple[Task, Attempt], ...]
    refused: tuple[str, ...]
    reclaimed: tuple[Task, ...]


@contextmanager
def committed_round(
    context: Context, asker: Asker
) -> Iterator[tuple[Writing, PlannedRound, Committed]]:
    """One round; the block may write more in its transaction.

    The plan is made outside the write lock. It is committed as it is unless somebody has written
    meanwhile: then it is made again under the lock, without a look at processes or files.
    """
    facts, planned, view = Facts(), None, view_of(context)
    if not context.store.shared:  # there is no way out of a shared commit
        facts, planned = _plan_outside(context, asker)
    with context.store.write() as tx:
        policy, now, mark = _policy(context, tx, asker), context.now(), tx.mark()
        if planned is None or not _is_current(planned, mark, policy, now):
            _bring_in(context, tx, policy, {})
            planned = look_and_plan(context, tx, policy, now, asker, facts=facts, view=view)
        if asker.executor == "none":
            row = asker.row(tx, planned.now)
            assert row is not None
            tx.put(row)
        yield tx, planned, commit(context, tx, planned)


def _is_current(planned: PlannedRound, mark: Mark, policy: Policy, now: Instant) -> bool:
    """Whether nothing has changed while the caller waited for its turn to write."""
    same = planned.mark == mark and planned.policy == policy
    return same and abs(now - planned.now) <= PLAN_LASTS


def _plan_outside(context: Context, asker: Asker) -> tuple[Facts, PlannedRound]:
    """Look things up, bring in what has arrived, then plan in a read transaction.

    The plan is of the time by which arrivals were brought in: of what is due later it says when.
    """
    facts, view = Facts(), view_of(context)
    with context.store.read() as reading:
        policy, now = _policy(context, reading, asker), context.now()
        view.follow(reading, policy)
        expired = expired_here(view.expired(now), now)
        waiting = files_waited_for(context, reading)
        due = reading.next_due()
        arrives = (due is not None and due <= now) or has_other_rules(reading, policy)
        if not (expired or waiting or arrives):
            planned = look_and_plan(context, reading, policy, now, asker, facts=facts, view=view)
            return facts, planned
    appeared = appeared_now(waiting)
    facts = gather(context, expired, now)
    if appeared or arrives:
        with context.store.write() as tx:
            now = _bring_in(context, tx, policy, appeared)
    with context.store.read() as reading:
        return facts, look_and_plan(context, reading, policy, now, asker, facts=facts, view=view)


def notice_files(context: Context) -> None:
    """Bring in artifacts that exist now, before a shared commit, which cannot look at files."""
    with context.store.read() as reading:
        waiting = files_waited_for(context, reading)
    appeared = appeared_now(waiting)
    if appeared:
        with context.store.write() as tx:
            _bring_in(context, tx, context.policy_for_reading(tx), appeared)


def _bring_in(context: Context, tx: Writing, policy: Policy, appeared: dict[str, Task]) -> Instant:
    """Bring in what has arrived by now; when that is."""
    changes = TaskChanges(tx, policy, context.now(), context.actor)
    follow_policy(changes)
    if appeared:
        notice(changes, appeared)
    bring_in(changes)
    return changes.now


def _policy(context: Context, reading: Reading, asker: Asker) -> Policy:
    """A daemon continues with the last good policy; a broken one refuses other callers."""
    return context.policy() if asker.executor == "none" else context.policy_for_reading(reading)


def commit_these(
    context: Context, tx: Writing, policy: Policy, asker: Asker, tasks: Sequence[str]
) -> Committed:
    """A round over these tasks alone, with no cap: the same planner, the same commit."""
    now, view = context.now(), view_of(context)
    view.follow(tx, policy)
    rows = [row for name in dict.fromkeys(tasks) if (row := tx.placed(name)) is not None]
    ready = [row.task for row in rows if row.task.status is Status.QUEUED and not row.wait]
    by_lane: dict[LaneKey, list[Entry]] = {}
    for task in ready:
        by_lane.setdefault(task.lane, []).append(task.entry)
    looked_at, _ = view.look(context, tx, now, Facts(), asker, WINDOW)
    slots = direct_slots(context.settings, policy)
    snapshot = replace(
        looked_at,
        lanes=tuple(lane_of(key, entries) for key, entries in by_lane.items()),
        workers=tuple(replace(worker, slots=slots) for worker in looked_at.workers),
    )
    uncapped = replace(policy, caps={})
    short = decided(lanes.plan(snapshot, uncapped, now))
    attempts = {attempt.task: attempt for attempt in view.expired(now)}
    planned = PlannedRound(
        uncapped, now, tx.mark(), snapshot, short, attempts, asker=asker, alone=True
    )
    return commit(context, tx, planned)


def commit(context: Context, tx: Writing, planned: PlannedRound) -> Committed:
    """Write a plan, and record it; every pick is checked again against its task."""
    plan = planned.decided.plan
    changes = TaskChanges(tx, planned.policy, planned.now, context.actor)
    books = Books(tx, planned.policy, planned.now)
    committed = carry_out(planned, changes, books)
    decisions.record(context, tx, planned)
    if plan.picks or plan.reclaims:
        tx.put_value("last_cycle", _cycle(plan, committed.refused, planned.now))
    changes.close()
    books.close()
    return committed


def carry_out(planned: PlannedRound, changes: TaskChanges, books: Books) -> Committed:
    """What a plan says, each pick checked again against its task."""
    plan, tx = planned.decided.plan, changes.tx
    _renew_living(planned, books)
    if plan.picks or plan.reclaims:
        _put_clocks(tx, planned)
    picked = [pick.task for pick in plan.picks]
    touched = tx.tasks([*picked, *(reclaim.task for reclaim in plan.reclaims)])
    reclaimed = []
    for reclaim in plan.reclaims:
        task, attempt = touched[reclaim.task], planned.attempts[reclaim.task]
        if attempt.lease == reclaim.lease and task.status.in_flight:
            reclaimed.append(end_attempt(changes, books, task, attempt, Happening.LOST))
    started, refused = _start(planned, touched, changes, books)
    _count_batch(tx, planned, len(started))
    return Committed(planned.decided, tuple(started), tuple(refused), tuple(reclaimed))


def _start(
    planned: PlannedRound, touched: dict[str, Task], changes: TaskChanges, books: Books
) -> tuple[list[tuple[Task, Attempt]], list[str]]:
    started: list[tuple[Task, Attempt]] = []
    refused: list[str] = []
    picks = planned.decided.plan.picks
    fence = changes.tx.number("fence", len(picks)) if picks else 0
    for pick in picks:
        task = touched.get(pick.task)
        if task is None or task.status is not Status.QUEUED or task.lane != pick.lane:
            refused.append(pick.task)
            continue
        attempt = _attempt(pick, task, fence, planned)
        lease = Lease(
            id=attempt.lease,
            fence=fence,
            attempt=attempt.number,
            worker=pick.worker,
            expires_at=attempt.expires_at,
            started_at=planned.now,
            estimate=pick.estimate,
        )
        leased = changes.happen(task, Happening.LEASED, lease=lease).task
        books.start(leased)
        books.keep(attempt)
        started.append((leased, attempt))
        fence += 1
    return started, refused


def _attempt(pick: Pick, task: Task, fence: int, planned: PlannedRound) -> Attempt:
    asker, now = planned.asker, planned.now
    project = planned.snapshot.projects[task.project]
    return Attempt(
        lease=f"L{fence}",
        task=task.id,
        project=task.project,
        kind=task.kind,
        agent=task.agent,
        number=task.attempts + 1,
        fence=fence,
        worker=pick.worker,
        leased_at=now,
        expires_at=now + planned.policy.lease.ttl,
        estimate=pick.estimate,
        weight=project.weight if planned.policy.share.mode == "virtual-time" else 0,
        charged=pick.estimate,
        workspace=pick.workspace,
        checks=checks_of(task, project) if project.checks or task.checks else (),
        executor=asker.executor if asker else "none",
        host=asker.host if asker else None,
        direct=asker.direct if asker else False,
    )


def _renew_living(planned: PlannedRound, books: Books) -> None:
    """An attempt that was seen to run keeps its lease, however late it is."""
    now = planned.now
    for attempt in planned.attempts.values():
        if attempt.lease in planned.facts.present and attempt.expires_at <= now:
            books.keep(changed(attempt, expires_at=now + planned.policy.lease.ttl))


def _put_clocks(tx: Writing, planned: PlannedRound) -> None:
    """The share clocks after the round; only those that moved."""
    projects = planned.snapshot.projects
    moved = {
        name: now
        for name, now in planned.decided.plan.clocks.projects.items()
        if now != (projects[name].clock, projects[name].present)
    }
    tx.put_clocks(moved)
    if planned.decided.plan.clocks.everyone != planned.snapshot.clock:
        tx.put_value("clock", planned.decided.plan.clocks.everyone)


def _count_batch(tx: Writing, planned: PlannedRound, started: int) -> None:
    policy, now = planned.policy, planned.now
    if policy.capacity.batch is None or not started:
        return
    since, before = planned.snapshot.batch_since, planned.snapshot.batch_started
    if since is None or now >= since + policy.cycle.interval:
        since, before = now, 0
    tx.put_value("batch", {"since": since, "started": before + started})


def _cycle(plan: Plan, refused: Sequence[str], now: Instant) -> LastCycle:
    return {
        "at": now,
        "picks": len(plan.picks),
        "reclaims": len(plan.reclaims),
        "refused": len(refused),
        "reason": str(plan.reason),
    }
