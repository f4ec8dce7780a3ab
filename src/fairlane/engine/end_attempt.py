"""The end of an attempt: usage, the pool, late success, and what holders learn."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane.engine.liveness import keep_workspace
from fairlane.engine.task_changes import TaskChanges
from fairlane.engine.usage import Books
from fairlane.lifecycle import backoff
from fairlane.model.errors import NotFound, Refused
from fairlane.model.event import Happening
from fairlane.model.instant import Instant, Micros
from fairlane.model.project import Pause, Pool, counted
from fairlane.model.record import changed, dataclass
from fairlane.model.task import Attempt, Lease, Outcome, Status, Task

Counters = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Report:
    """What a holder says of its attempt; tokens and cost are totals so far."""

    tokens: Counters | None = None
    usd: int | None = None
    detail: str = ""
    result: Mapping[str, object] | None = None
    retry_after: Micros | None = None
    resets_at: Instant | None = None
    checks: tuple[Mapping[str, object], ...] = ()  # of a holder that ran them itself


NOTHING = Report()


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended, and what must be known besides the report."""

    happening: Happening
    report: Report = NOTHING
    session: str | None = None
    park: bool = False
    pause: str = ""  # the pool is paused with this reason
    work: Mapping[str, object] | None = None  # what it changed in its repository
    claim: bool = False  # said by the attempt itself, or by a holder outside


def unreadable(error: Exception) -> Ending:
    """The end of an attempt that our own code could not take in: a person looks at it."""
    return Ending(Happening.FAILED, Report(detail=f"{type(error).__name__}: {error}"), park=True)


def end_attempt(
    changes: TaskChanges,
    books: Books,
    task: Task,
    attempt: Attempt,
    happening: Happening,
    report: Report = NOTHING,
    park: bool = False,
    resumes: bool = False,
    check: str = "",
) -> Task:
    """The attempt ends as the transition table says."""
    asked = changes.now
    if report.retry_after is not None or report.resets_at is not None:
        asked = backoff.asked_until(changes.now, report.retry_after, report.resets_at)
    step = changes.happen(
        task, happening, detail=report.detail, park=park, asked_until=asked, resumes=resumes,
        check=check,
    )  # fmt: skip
    assert step.outcome is not None
    ended = books.use(
        attempt,
        task,
        report.tokens,
        report.usd,
        ended=True,
        ended_at=max(changes.now, attempt.leased_at),  # a clock may have gone back
        outcome=step.outcome.value,
        detail=report.detail,
        result=report.result if report.result is not None else attempt.result,
    )
    if step.outcome is Outcome.SUCCEEDED:
        books.complete(task)
    elif step.outcome is Outcome.RELEASED:
        books.not_started(task, attempt)
    _tell_pool(changes, task, ended, step.outcome, report)
    if happening is Happening.LOST:
        return keep_workspace(changes, attempt, step.task)
    return step.task


def may_still_succeed(task: Task, attempt: Attempt) -> bool:
    """Whether its lease ended by expiry, and nothing was done about the task since."""
    waiting = task.status in (Status.QUEUED, Status.PARKED)
    return attempt.outcome == Outcome.LOST and waiting and task.lost_fence == attempt.fence


def succeed_late(
    changes: TaskChanges, books: Books, task: Task, attempt: Attempt, report: Report
) -> Task:
    """The task is done; its usage is booked with the attempt."""
    booked = books.use(attempt, task, report.tokens, report.usd, ended=True)
    lease = Lease(id=attempt.lease, fence=attempt.fence)
    done = changes.happen(task, Happening.LATE_SUCCESS, lease=lease).task
    books.keep(changed(booked, outcome=str(Outcome.SUCCEEDED), result=report.result))
    books.complete(done)
    return done


def pause_pool(changes: TaskChanges, pool: str, reason: str) -> None:
    """Nobody can work on this account: its pool is paused until a person resumes it."""
    scope = f"pool:{pool}"
    if all(pause.scope != scope for pause in changes.tx.table(Pause).values()):
        changes.tx.put(Pause(scope, changes.actor, changes.now, reason))
        changes.note("paused", None, scope=scope, reason=reason)


def _tell_pool(
    changes: TaskChanges, task: Task, attempt: Attempt, outcome: Outcome, report: Report
) -> None:
    """A throttle cools the pool down; good news may prove it healthy."""
    if task.pool is None:
        return
    pool = changes.tx.table(Pool).get(task.pool) or Pool(task.pool)
    if outcome is Outcome.THROTTLED:
        after = backoff.throttle(
            pool, changes.policy, changes.now, attempt.leased_at, report.retry_after,
            report.resets_at, report.detail,
        )  # fmt: skip
    else:
        after = backoff.prove(
            pool,
            attempt.leased_at,
            outcome,
            used=counted(attempt.tokens, changes.policy.usage.count),
            ran=changes.now - attempt.leased_at,
        )
    if after != pool:
        changes.tx.put(after)
        kind = "cooldown" if outcome is Outcome.THROTTLED else "pool_healthy"
        changes.note(
            kind, None, pool=after.name, until=after.until, hits=after.hits, cause=after.cause
        )


def ended_error(attempt: Attempt) -> Refused:
    """What the holder of a lease that has ended learns."""
    if attempt.outcome == Outcome.LOST:
        message = f"lease {attempt.lease} of {attempt.task} expired and was reclaimed"
        hint = "Only a success is still taken, until a new lease, a retry or a cancel."
        return Refused(message, hint, code="lease_lost")
    message = f"lease {attempt.lease} of {attempt.task} has ended ({attempt.outcome})"
    return Refused(message, "A lease ends once; take a new one.", code="lease_ended")


def unknown_lease(lease: str) -> NotFound:
    """Nobody knows this lease."""
    hint = "It was never given out, or its task was compacted."
    return NotFound(f"no lease {lease!r}", hint, code="unknown_lease")
