"""Rounds: look, plan, commit as one transaction; a lease is durable before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlane.model.event import Happening
from fairlane.model.frozen import changed
from fairlane.model.instant import Instant
from fairlane.model.plan import Pick, Plan
from fairlane.model.task import Lease, Status, Task
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA, decisions
from fairlane.service.artifacts import notice
from fairlane.service.booking import Books
from fairlane.service.desk import Desk
from fairlane.service.ending import end_attempt
from fairlane.service.journal import Journal, bring_in, follow_policy
from fairlane.service.looking import Asker, Seen, look_and_plan, preview
from fairlane.service.plans import plan_document
from fairlane.store.base import Attempt, Writing


@dataclass(frozen=True, slots=True)
class Committed:
    """What a round started, and what was refused because it had changed meanwhile."""

    plan: Plan
    started: tuple[tuple[Task, Attempt], ...]
    refused: tuple[str, ...]
    reclaimed: tuple[Task, ...]


def commit_round(
    desk: Desk, tx: Writing, policy: Policy, now: Instant, asker: Asker | None = None
) -> Committed:
    """One round inside a transaction: look, plan, end what expired, lease what was picked."""
    before = tx.version()
    journal = Journal(tx, policy, now, desk.actor)
    follow_policy(journal)
    notice(desk, journal)
    bring_in(journal)
    seen = look_and_plan(desk, tx, policy, now, asker)
    return commit(desk, tx, policy, now, seen, before)


def commit(
    desk: Desk, tx: Writing, policy: Policy, now: Instant, seen: Seen, before: int
) -> Committed:
    """Write a plan; every pick is checked again against its task."""
    plan = seen.plan
    journal = Journal(tx, policy, now, desk.actor)
    books = Books(tx, policy, now)
    _renew_living(seen, books, policy, now)
    if plan.picks or plan.reclaims:
        _put_clocks(tx, seen)
    picked = [pick.task for pick in plan.picks]
    touched = tx.tasks([*picked, *(reclaim.task for reclaim in plan.reclaims)])
    reclaimed = []
    for reclaim in plan.reclaims:
        task, attempt = touched[reclaim.task], seen.attempts[reclaim.task]
        if attempt.lease == reclaim.lease and task.status.in_flight:
            reclaimed.append(end_attempt(journal, books, task, attempt, Happening.LOST))
    started, refused = _start(seen, touched, journal, books, policy, now)
    _count_batch(tx, seen, policy, now, len(started))
    decisions.record(tx, seen, policy, now, before)
    if plan.picks or plan.reclaims:
        tx.put_value("last_cycle", _cycle(plan, refused, now))
    journal.close()
    books.close()
    return Committed(plan, tuple(started), tuple(refused), tuple(reclaimed))


def plan(desk: Desk) -> dict[str, Any]:
    """The plan that a cycle would make now, as every interface shows it."""
    with desk.store.read() as reading:
        snapshot, made, policy = preview(desk, reading)
    return plan_document(made, snapshot, policy)


def _start(
    seen: Seen,
    touched: dict[str, Task],
    journal: Journal,
    books: Books,
    policy: Policy,
    now: Instant,
) -> tuple[list[tuple[Task, Attempt]], list[str]]:
    started: list[tuple[Task, Attempt]] = []
    refused: list[str] = []
    picks = seen.plan.picks
    fence = journal.tx.number("fence", len(picks)) if picks else 0
    for pick in picks:
        task = touched.get(pick.task)
        if task is None or task.status is not Status.QUEUED or task.lane != pick.lane:
            refused.append(pick.task)
            continue
        attempt = _attempt(pick, task, fence, seen, policy, now)
        lease = Lease(
            id=attempt.lease,
            fence=fence,
            attempt=attempt.number,
            worker=pick.worker,
            expires_at=attempt.expires_at,
            started_at=now,
            estimate=pick.estimate,
        )
        leased = journal.happen(task, Happening.LEASED, lease=lease).task
        books.start(leased)
        books.keep(attempt)
        started.append((leased, attempt))
        fence += 1
    return started, refused


def _attempt(
    pick: Pick, task: Task, fence: int, seen: Seen, policy: Policy, now: Instant
) -> Attempt:
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
        expires_at=now + policy.lease.ttl,
        estimate=pick.estimate,
        weight=seen.snapshot.projects[task.project].weight,
        charged=pick.estimate,
        workspace=pick.workspace,
        executor=seen.asker.executor if seen.asker else "none",
        host=seen.asker.host if seen.asker else None,
        direct=seen.asker.direct if seen.asker else False,
    )


def _renew_living(seen: Seen, books: Books, policy: Policy, now: Instant) -> None:
    """An attempt whose process was seen keeps its lease, however late it is."""
    for each in seen.snapshot.in_flight:
        expires = each.lease.expires_at
        if each.lease.alive and expires is not None and expires <= now:
            books.keep(changed(seen.attempts[each.task], expires_at=now + policy.lease.ttl))


def _put_clocks(tx: Writing, seen: Seen) -> None:
    """The share clocks after the round; only those that moved."""
    projects = seen.snapshot.projects
    moved = {
        name: now
        for name, now in seen.plan.clocks.projects.items()
        if now != (projects[name].clock, projects[name].present)
    }
    tx.put_clocks(moved)
    if seen.plan.clocks.everyone != seen.snapshot.clock:
        tx.put_value("clock", seen.plan.clocks.everyone)


def _count_batch(tx: Writing, seen: Seen, policy: Policy, now: Instant, started: int) -> None:
    if policy.capacity.batch is None or not started:
        return
    since, before = seen.snapshot.batch_since, seen.snapshot.batch_started
    if since is None or now >= since + policy.cycle.interval:
        since, before = now, 0
    tx.put_value("batch", {"since": since, "started": before + started})


def _cycle(plan: Plan, refused: list[str], now: Instant) -> dict[str, Any]:
    return {
        "at": now,
        "picks": len(plan.picks),
        "reclaims": len(plan.reclaims),
        "refused": len(refused),
        "reason": str(plan.reason),
    }


__all__ = ["SCHEMA", "Asker", "Committed", "commit", "commit_round", "plan", "preview"]
