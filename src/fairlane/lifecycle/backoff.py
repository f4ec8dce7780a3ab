"""How long to wait after failures and throttles, and when to park instead."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from fairlane.model.instant import DAY, MINUTE, SECOND, Instant, Micros
from fairlane.model.record import replace
from fairlane.model.task import Outcome, Status

if TYPE_CHECKING:
    from fairlane.model.project import Pool
    from fairlane.model.task import Task
    from fairlane.policy.policy import Policy, Retry

#: How finely the jitter is drawn: 64 bits of a digest.
_DRAWS_MAX = 2**64 - 1


def wait_after(retry: Retry, n: int, task_id: str, attempt: int) -> Micros:
    """After the n-th setback: min(cap, base · factor^(n−1) · (1 ± jitter))."""
    first = retry.base * (1 + retry.jitter * _draw(task_id, attempt))
    if first <= 0 or n < 1:
        return 0
    power, exponent = retry.factor, 1
    while exponent * 2 <= n - 1:  # no power grows past the cap, however large n is
        power, exponent = power * power, exponent * 2
        if first * power >= retry.cap:
            return retry.cap
    return int(min(Fraction(retry.cap), first * retry.factor ** (n - 1)))


def attempts_max(max_attempts: int | None, policy: Policy) -> int:
    """How many failures park a task: its own number, else the policy's."""
    return policy.retry.max_attempts if max_attempts is None else max_attempts


def gives_up(
    outcome: Outcome, failures: int, launch_failures: int, max_attempts: int | None, policy: Policy
) -> bool:
    """Whether one more failure parks a task that had these counts before it.

    While launch failures are at the breaker's limit the task is on its one half-open try:
    whatever fails then, parks.
    """
    if failures + 1 >= attempts_max(max_attempts, policy):
        return True
    limit = policy.breaker.launch_failures
    in_a_row = launch_failures + (outcome is Outcome.LAUNCH_FAILED)
    return limit is not None and 0 < in_a_row >= limit


def half_open_at(task: Task, policy: Policy) -> Instant | None:
    """When a task that launch failures alone have parked is tried once more; None: never."""
    after, limit = policy.breaker.half_open_after, policy.breaker.launch_failures
    if task.status is not Status.PARKED or task.half_opened or task.parked_at is None:
        return None
    in_a_row = task.launch_failures
    alone = in_a_row == task.failures or (limit is not None and in_a_row >= limit)
    if after is None or not in_a_row or not alone:
        return None
    return task.parked_at + after


def _draw(task_id: str, attempt: int) -> Fraction:
    """A number from −1 to 1 that task and attempt decide: the same on every replay."""
    from hashlib import sha256  # not every command needs it

    digest = sha256(f"{task_id}#{attempt}".encode()).digest()
    return Fraction(2 * int.from_bytes(digest[:8], "big"), _DRAWS_MAX) - 1


#: After the time at which the provider says that a used-up window opens again.
RESET_GRACE: Micros = MINUTE
#: The longest wait for a provider: windows are a week at most, a later time is a mistake.
WAIT_MAX: Micros = 8 * DAY
#: An attempt that ran so long without a throttle proves its pool healthy.
PROVED_AFTER: Micros = 60 * SECOND


def throttle(
    pool: Pool,
    policy: Policy,
    now: Instant,
    attempt_started_at: Instant,
    retry_after: Micros | None = None,
    resets_at: Instant | None = None,
    cause: str = "",
) -> Pool:
    """The pool after a throttle: one hit more, or, for news of an old one, at most a later end."""
    said = asked_until(now, retry_after, resets_at)
    active = pool.until is not None and now < pool.until
    if active or not _began_after(pool, attempt_started_at):
        return _extended(pool, said, now, cause)
    hits = pool.hits + 1
    until = max(said, now + own_wait(policy, hits))
    return replace(pool, hits=hits, until=until, cause=cause or pool.cause)


def prove(
    pool: Pool,
    attempt_started_at: Instant,
    outcome: Outcome | None = None,
    *,
    used: int = 0,
    ran: Micros = 0,
) -> Pool:
    """The pool after good news of an attempt: it counts only if that began after the cooldown.

    Good news: it succeeded or failed by itself, or used tokens, or ran a minute unthrottled.
    `until` is kept: a throttle of an attempt that began before it is still no new hit.
    """
    if not pool.hits or not _began_after(pool, attempt_started_at):
        return pool
    ended_well = outcome in (Outcome.SUCCEEDED, Outcome.FAILED)
    works = outcome is not Outcome.THROTTLED and (used > 0 or ran >= PROVED_AFTER)
    return replace(pool, hits=0, cause="") if ended_well or works else pool


def asked_until(now: Instant, retry_after: Micros | None, resets_at: Instant | None) -> Instant:
    """Until when a provider asks to wait; now, where it does not say."""
    asked = now + min(max(0, retry_after or 0), WAIT_MAX)
    if resets_at is not None:
        asked = max(asked, min(resets_at, now + WAIT_MAX) + RESET_GRACE)
    return asked


def own_wait(policy: Policy, n: int) -> Micros:
    """After the n-th in a row: base · 2^(n−1), n counted to the policy's most; none after none."""
    exponent = min(n, policy.cooldown.exponent_max) - 1
    return policy.cooldown.base << exponent if n > 0 else 0


def _began_after(pool: Pool, started_at: Instant) -> bool:
    return pool.until is None or started_at >= pool.until


def _extended(pool: Pool, said: Instant, now: Instant, cause: str) -> Pool:
    """A later end, if the provider named one; otherwise the pool is left alone."""
    if pool.until is None or said <= max(pool.until, now):
        return pool
    return replace(pool, until=said, cause=cause or pool.cause)
