"""Ending: an attempt is over; its usage is booked, its pool and its task learn of it."""

from __future__ import annotations

from typing import Any

from fairlane.lifecycle import cooldown
from fairlane.model.event import Happening
from fairlane.model.frozen import changed
from fairlane.model.instant import Instant, Micros
from fairlane.model.record import dataclass
from fairlane.model.resources import Pool
from fairlane.model.task import Lease, Outcome, Status, Task
from fairlane.service.booking import Books
from fairlane.service.journal import Journal
from fairlane.store.base import Attempt

Counters = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Report:
    """What a holder says of its attempt; tokens and cost are totals so far."""

    tokens: Counters | None = None
    usd: int | None = None
    detail: str = ""
    result: dict[str, Any] | None = None
    retry_after: Micros | None = None
    resets_at: Instant | None = None


NOTHING = Report()


def end_attempt(
    journal: Journal,
    books: Books,
    task: Task,
    attempt: Attempt,
    happening: Happening,
    report: Report = NOTHING,
    park: bool = False,
) -> Task:
    """The attempt ends as the transition table says."""
    asked = cooldown.asked_until(journal.now, report.retry_after, report.resets_at)
    found = journal.happen(task, happening, detail=report.detail, park=park, asked_until=asked)
    assert found.outcome is not None
    ended = books.use(
        attempt,
        task,
        report.tokens,
        report.usd,
        ended=True,
        ended_at=max(journal.now, attempt.leased_at),  # a clock may have gone back
        outcome=found.outcome.value,
        detail=report.detail,
        result=report.result if report.result is not None else attempt.result,
    )
    if found.outcome is Outcome.SUCCEEDED:
        books.complete(task)
    elif found.outcome is Outcome.RELEASED:
        books.not_started(task, attempt)
    _tell_pool(journal, task, ended, found.outcome, report)
    return found.task


def may_still_succeed(task: Task, attempt: Attempt) -> bool:
    """Whether its lease ended by expiry, and nothing was done about the task since."""
    waiting = task.status in (Status.QUEUED, Status.PARKED)
    return attempt.outcome == Outcome.LOST and waiting and task.lost_fence == attempt.fence


def succeed_late(
    journal: Journal, books: Books, task: Task, attempt: Attempt, report: Report
) -> Task:
    """The task is done; its usage is booked with the attempt."""
    booked = books.use(attempt, task, report.tokens, report.usd, ended=True)
    lease = Lease(id=attempt.lease, fence=attempt.fence)
    done = journal.happen(task, Happening.LATE_SUCCESS, lease=lease).task
    books.keep(changed(booked, outcome=str(Outcome.SUCCEEDED), result=report.result))
    books.complete(done)
    return done


def _tell_pool(
    journal: Journal, task: Task, attempt: Attempt, outcome: Outcome, report: Report
) -> None:
    """A throttle cools the pool down; good news may prove it healthy."""
    if task.pool is None:
        return
    pool = journal.tx.pools().get(task.pool) or Pool(task.pool)
    if outcome is Outcome.THROTTLED:
        after = cooldown.throttle(
            pool, journal.policy, journal.now, attempt.leased_at, report.retry_after,
            report.resets_at, report.detail,
        )  # fmt: skip
    else:
        after = cooldown.prove(
            pool,
            attempt.leased_at,
            outcome,
            used=sum(attempt.tokens),
            ran=journal.now - attempt.leased_at,
        )
    if after != pool:
        journal.tx.put_pool(after)
        kind = "cooldown" if outcome is Outcome.THROTTLED else "pool_healthy"
        told = {"pool": after.name, "until": after.until, "hits": after.hits}
        journal.note(kind, None, **told, cause=after.cause)
