"""Leases that ran out: which, and what becomes of their tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.lifecycle.retry import gives_up
from fairlane.lifecycle.stops import counts_as
from fairlane.model.task import FAILURES, Outcome, Status

if TYPE_CHECKING:
    from fairlane.model.instant import Instant
    from fairlane.model.snapshot import InFlight
    from fairlane.policy.policy import Policy


def expired(in_flight: InFlight, now: Instant) -> bool:
    """Whether the lease has run out and its process was not seen alive."""
    lease = in_flight.lease
    return lease.expires_at is not None and lease.expires_at <= now and not lease.alive


def status_after_loss(in_flight: InFlight, policy: Policy, stop_requested: str = "") -> Status:
    """What `step` makes of the task when this attempt is lost."""
    outcome = counts_as(Outcome.LOST, stop_requested)
    failures = in_flight.lane.failures
    return status_after(
        outcome, failures, in_flight.launch_failures, in_flight.max_attempts, policy
    )


def status_after(
    outcome: Outcome, failures: int, launch_failures: int, max_attempts: int | None, policy: Policy
) -> Status:
    """The status that follows the end of an attempt, given the counts before it."""
    if outcome is Outcome.SUCCEEDED:
        return Status.DONE
    if outcome is Outcome.CANCELED:
        return Status.CANCELED
    if outcome not in FAILURES:
        return Status.QUEUED
    parks = gives_up(outcome, failures, launch_failures, max_attempts, policy)
    return Status.PARKED if parks else Status.QUEUED
