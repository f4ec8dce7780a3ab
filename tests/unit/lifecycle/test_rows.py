"""The rows of the five seeds that speak of a task's life."""

from __future__ import annotations

import pytest

from fairlane.lifecycle.transitions import IllegalTransition
from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.task import Lease, Outcome, Status, Task
from tests.unit.lifecycle.story import told


def waits(preset: str, most: int, **overrides) -> list[int]:
    t = told(preset, **overrides)
    found = []
    for _ in range(most):
        t.attempt("failed")
        found.append(t.wait)
    return found


def test_depth_first_parks_after_twenty_attempts_without_waiting():
    t = told("depth-first")
    assert t.attempt(*["failed"] * 19).status is Status.QUEUED
    assert t.wait == 0
    assert t.attempt("launch_failed").reason == "launch_failed (attempt 20 of 20)"


def test_serial_lanes_waits_and_parks_at_the_sixth():
    assert waits("serial-lanes", 5) == [30, 60, 120, 240, 300]
    t = told("serial-lanes")
    assert t.attempt(*["failed"] * 5).status is Status.QUEUED
    assert t.attempt("failed").status is Status.PARKED


def test_serial_lanes_with_jitter_is_within_a_tenth_and_repeats():
    first, second = (waits("serial-lanes", 4, retry__jitter=0.1) for _ in range(2))
    assert first == second
    for wait, exact in zip(first, [30, 60, 120, 240], strict=True):
        assert exact * 0.9 - 1 <= wait <= exact * 1.1


def test_serial_lanes_a_task_in_backoff_can_be_canceled_or_retried():
    t = told("serial-lanes")
    waiting = t.attempt("failed")
    retried = t.happens("retry")
    assert (retried.backoff_until, retried.failures, retried.ready_since) == (None, 0, t.now)
    t.task = waiting
    assert t.happens("cancel").status is Status.CANCELED


@pytest.mark.parametrize("end", ["succeeded", "cancel"])
def test_serial_lanes_succeeded_or_canceled_has_no_failures(end):
    t = told("serial-lanes")
    t.attempt("failed", "failed")
    if end == "cancel":
        t.happens("cancel")
    else:
        t.attempt("succeeded")
    assert (t.task.failures, t.task.lease) == (0, None)


def test_serial_lanes_a_process_gone_after_a_restart_is_lost():
    t = told("serial-lanes")
    task = t.attempt("lost", detail="recovered")
    assert (task.status, t.last.outcome) == (Status.QUEUED, Outcome.LOST)
    assert t.last.events[0][1]["detail"] == "recovered"


def test_batch_dispatch_three_launch_failures_park_with_the_last_error():
    t = told("batch-dispatch", retry__max_attempts=20)
    t.attempt("launch_failed", "launch_failed", detail="no such program: a")
    task = t.attempt("launch_failed", detail="no such program: b")
    assert task.reason == "launch_failed: no such program: b (attempt 3 of 20)"
    t.now += 1_000 * MINUTE
    with pytest.raises(IllegalTransition):
        t.happens("half_open")


@pytest.mark.parametrize("end", ["environment", "released"])
def test_batch_dispatch_a_busy_store_is_no_failure(end):
    t = told("batch-dispatch")
    for _ in range(10):
        t.leased()
        task = t.happens(end)
    assert (task.status, task.failures, task.attempts) == (Status.QUEUED, 0, 10)


def test_batch_dispatch_a_command_that_dies_between_lease_and_launch():
    t = told("batch-dispatch")
    t.leased()
    task = t.happens("lost")
    assert (task.status, task.failures, task.attempts) == (Status.QUEUED, 1, 1)


def test_fail_closed_waits():
    assert waits("fail-closed", 8, retry__max_attempts=20) == [1, 2, 4, 8, 16, 32, 60, 60]


def test_fail_closed_an_expired_lease_counts_once():
    t = told("fail-closed")
    t.leased()
    task = t.happens("lost")
    assert (task.status, task.failures, t.wait) == (Status.QUEUED, 1, 1)
    with pytest.raises(IllegalTransition):
        t.happens("lost")


def test_fail_closed_the_third_of_three_parks_until_retry():
    t = told("fail-closed")
    task = t.attempt("lost", "lost", "lost")
    assert task.reason == "lost (attempt 3 of 3)"
    with pytest.raises(IllegalTransition):
        t.happens("leased", lease=Lease("l9", 9))
    task = t.happens("retry")
    assert (task.status, task.failures) == (Status.QUEUED, 0)


def test_fail_closed_two_of_two():
    t = told("fail-closed", task=Task("t1", max_attempts=2))
    assert t.attempt("failed", "failed").reason.endswith("(attempt 2 of 2)")


@pytest.mark.parametrize("end", ["succeeded", None])
def test_fail_closed_retry_of_what_is_not_parked_or_waiting_is_refused(end):
    t = told("fail-closed")
    if end:
        t.attempt(end)
    before = t.task
    with pytest.raises(IllegalTransition, match="t1"):
        t.happens("retry")
    assert t.task == before


def test_fail_closed_late_news_of_an_expired_lease():
    t = told("fail-closed")
    t.attempt("lost")
    with pytest.raises(IllegalTransition):
        t.happens("failed")  # a late failure
    late = t.task
    assert t.happens("late_success", lease=Lease("l1", 1)).status is Status.DONE
    t.task = late
    t.now += 2 * SECOND
    t.leased()
    with pytest.raises(IllegalTransition):
        t.happens("late_success", lease=Lease("l1", 1))


def test_fail_closed_a_clean_release_is_leased_again_at_once():
    t = told("fail-closed")
    t.leased()
    released = t.happens("released")
    assert released.backoff_until is None
    again = t.leased()
    assert (again.lease.fence, again.lease.attempt) == (2, 2)
