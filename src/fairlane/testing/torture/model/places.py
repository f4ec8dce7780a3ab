"""Where a task stands: in a lane, waiting for what, until when; and when a parked one reopens."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.model.instant import Instant
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy

ALIVE = (Status.QUEUED, Status.LEASED, Status.RUNNING)
DEAD = (Status.PARKED, Status.CANCELED)
StatusOf = Callable[[str], Status]


def wait_of(task: Task, status_of: StatusOf, policy: Policy, now: Instant) -> str:
    """The code of what a queued task waits for first; empty: nothing."""
    needs = [status_of(name) for name in task.needs]
    heeds = task.parent is not None and policy.readiness.parent == "done"
    parents = [status_of(task.parent)] if heeds and task.parent is not None else []
    ignores = policy.readiness.upstream == "run"
    facts = (
        ("needs", any(status in ALIVE for status in needs)),
        ("parent", any(status in ALIVE for status in parents)),
        ("artifact", bool(task.artifacts_missing)),
        ("backoff", task.backoff_until is not None and task.backoff_until > now),
        ("not_before", task.not_before is not None and task.not_before > now),
        ("source", bool(task.source_hold)),
        ("upstream", not ignores and any(status in DEAD for status in [*needs, *parents])),
        ("paused", task.paused),
    )
    return next((code for code, waits in facts if waits), "")


def due_of(task: Task, wait: str, policy: Policy, now: Instant) -> Instant | None:
    """When a timer may free it: the next of what waits, the half-open time of what is parked."""
    if task.status is Status.PARKED:
        return reopens_at(task, policy)
    if not wait:
        return None
    timers = (task.backoff_until, task.not_before)
    return min((at for at in timers if at is not None and at > now), default=None)


def reopens_at(task: Task, policy: Policy) -> Instant | None:
    """When a task that launch failures alone have parked is tried once more; None: never."""
    after, limit = policy.breaker.half_open_after, policy.breaker.launch_failures
    if after is None or task.parked_at is None or task.half_opened or not task.launch_failures:
        return None
    tripped = limit is not None and task.launch_failures >= limit
    alone = task.launch_failures == task.failures
    return task.parked_at + after if tripped or alone else None
