"""How long a throttle is waited for, what it does to its pool, and what proves that healthy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairlane.model.instant import DAY, MINUTE, SECOND, Instant, Micros
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from fairlane.model.resources import Pool
    from fairlane.policy.policy import Policy

#: After the time at which the provider says that a used-up window opens again.
RESET_GRACE: Micros = MINUTE
#: No provider is waited for longer: windows are a week at most, a later time is a mistake.
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
    if _active(pool, now) or not _began_after(pool, attempt_started_at):
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


def _active(pool: Pool, now: Instant) -> bool:
    return pool.until is not None and now < pool.until


def _began_after(pool: Pool, started_at: Instant) -> bool:
    return pool.until is None or started_at >= pool.until


def _extended(pool: Pool, said: Instant, now: Instant, cause: str) -> Pool:
    """A later end, if the provider named one; otherwise the pool is left alone."""
    if pool.until is None or said <= max(pool.until, now):
        return pool
    return replace(pool, until=said, cause=cause or pool.cause)
