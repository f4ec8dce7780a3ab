"""After a failure: try again, and when; or park."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from fairlane.model.task import Outcome, Status

if TYPE_CHECKING:
    from fairlane.model.instant import Instant, Micros
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

    While launch failures stand at the breaker's limit the task is on its one half-open try:
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
