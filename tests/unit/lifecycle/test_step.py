"""What each happening does to a task."""

from __future__ import annotations

import pytest

from fairlane.lifecycle.step import step
from fairlane.lifecycle.transitions import IllegalTransition, Stop, request_stop, stop_kind
from fairlane.model.event import Happening
from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.task import Lease, Outcome, Status, Task
from tests.unit.lifecycle.story import START, told


def test_a_lease_makes_an_attempt_and_a_success_ends_all():
    t = told()
    task = t.leased()
    assert (task.status, task.attempts, task.lease.fence) == (Status.LEASED, 1, 1)
    task = t.happens("started")
    assert (task.status, task.lease.started_at) == (Status.RUNNING, START)
    assert t.happens("started") == task  # told twice
    assert t.last.events == ()
    task = t.happens("succeeded")
    assert (task.status, task.lease, task.failures) == (Status.DONE, None, 0)
    assert (t.last.outcome, t.last.freed) == (Outcome.SUCCEEDED, True)
    assert t.last.events[0][0] == "succeeded"


def test_a_lease_is_needed_and_numbered_by_the_task():
    with pytest.raises(ValueError, match="with a lease"):
        step(Task("t1"), Happening.LEASED, told().policy, START)
    t = told(task=Task("t1", attempts=6))
    assert t.leased().lease.attempt == 7


def test_a_failure_waits_and_is_ready_when_the_wait_ends():
    t = told()
    task = t.attempt("failed", detail="exit 1")
    assert (task.status, task.failures, t.wait) == (Status.QUEUED, 1, 30)
    assert task.ready_since == task.backoff_until == t.now + 30 * SECOND
    assert [kind for kind, _ in t.last.events] == ["failed", "backoff"]
    assert t.last.events[0][1] == {
        "attempt": 1,
        "fence": 1,
        "detail": "exit 1",
        "failures": 1,
        "of": 3,
    }


def test_without_a_base_there_is_no_backoff():
    t = told("depth-first")
    task = t.attempt("failed")
    assert (task.backoff_until, task.ready_since) == (None, t.now)
    assert [kind for kind, _ in t.last.events] == ["failed"]


@pytest.mark.parametrize(
    ("end", "detail", "reason"),
    [
        ("failed", "exit 1", "failed: exit 1 (attempt 3 of 3)"),
        ("launch_failed", "no such program", "launch_failed: no such program (attempt 3 of 3)"),
        ("lost", "", "lost (attempt 3 of 3)"),
    ],
)
def test_the_last_failure_parks_with_its_reason(end, detail, reason):
    t = told()
    task = t.attempt(end, end, end, detail=detail)
    assert (task.status, task.reason, task.parked_at) == (Status.PARKED, reason, t.now)
    assert t.last.events[-1] == ("parked", {"reason": reason})
    assert (task.backoff_until, task.lease) == (None, None)


def test_the_task_may_have_its_own_most():
    assert told(task=Task("t1", max_attempts=1)).attempt("failed").status is Status.PARKED
    lenient = told(task=Task("t1", max_attempts=9))
    assert lenient.attempt(*["failed"] * 8).status is Status.QUEUED


def test_a_failure_can_park_though_attempts_are_left():
    task = told().attempt("failed", detail="merge conflict", park=True)
    assert task.reason == "failed: merge conflict (attempt 1 of 3)"


@pytest.mark.parametrize("end", ["throttled", "environment", "released"])
def test_what_is_not_its_fault_keeps_its_place(end):
    t = told()
    t.now += 7 * MINUTE
    task = t.attempt(end, end)
    assert (task.status, task.failures, task.attempts) == (Status.QUEUED, 0, 2)
    assert task.ready_since == task.entry.ready_since == START
    assert (t.last.outcome, t.last.freed, task.lease) == (Outcome(end), True, None)


def test_a_place_after_a_backoff_is_kept_too():
    t = told()
    since = t.attempt("failed").ready_since
    assert t.attempt("environment").ready_since == since


def test_environment_waits_longer_each_time_in_a_row():
    t = told(retry__max_attempts=2)
    waits = []
    for _ in range(6):
        t.attempt("environment")
        waits.append(t.wait)
    assert waits == [30, 60, 120, 240, 300, 300]
    t.attempt("failed")
    t.attempt("environment")
    assert t.wait == 30


def test_the_second_release_in_a_row_waits():
    t = told()
    waits = []
    for _ in range(4):
        t.attempt("released")
        waits.append(t.wait)
    assert waits == [0, 30, 60, 120]
    t.attempt("failed")
    t.attempt("released")
    assert t.wait == 0


def test_an_attempt_that_was_launched_ends_the_row_of_launch_failures():
    t = told(retry__max_attempts=20)
    t.attempt("launch_failed", "launch_failed")
    for end in ("failed", "lost", "throttled", "environment", "released"):
        before = t.task
        assert before.launch_failures == 2
        assert t.attempt(end).launch_failures == 0
        t.task = before
    t.leased()
    assert t.happens("environment").launch_failures == 2  # it never started
    t.attempt("failed", "launch_failed", "launch_failed")
    assert t.task.status is Status.QUEUED
    task = t.attempt("launch_failed", detail="no worktree")
    assert task.reason == "launch_failed: no worktree (attempt 6 of 20)"


# Half-open.


def test_launch_failures_alone_are_tried_once_more():
    t = told()
    t.attempt("launch_failed", "launch_failed", "launch_failed")
    t.now += 15 * MINUTE - 1
    with pytest.raises(IllegalTransition):
        t.happens("half_open")
    t.now += 1
    task = t.happens("half_open")
    assert (task.status, task.ready_since, task.reason) == (Status.QUEUED, t.now, "")
    task = t.attempt("launch_failed", detail="still not there")
    assert task.reason == "launch_failed: still not there (attempt 4 of 4)"
    t.now += 60 * MINUTE
    with pytest.raises(IllegalTransition):
        t.happens("half_open")
    assert t.happens("retry").half_opened is False


@pytest.mark.parametrize("end", ["failed", "lost", "launch_failed"])
def test_the_half_open_try_parks_for_good_whatever_fails(end):
    t = told(retry__max_attempts=20)
    t.attempt("launch_failed", "failed", *["launch_failed"] * 3)
    t.now += 15 * MINUTE
    t.happens("half_open")
    task = t.attempt(end)
    assert (task.status, task.reason) == (Status.PARKED, f"{end} (attempt 6 of 20)")


def test_no_half_open_after_other_failures_or_without_the_setting():
    mixed = told()
    mixed.attempt("failed", "launch_failed", "launch_failed")
    seed = told("batch-dispatch")
    seed.attempt(*["launch_failed"] * 3)
    for t in (mixed, seed):
        assert t.task.status is Status.PARKED
        t.now += 60 * MINUTE
        with pytest.raises(IllegalTransition):
            t.happens("half_open")


# Cancel and other stops.


@pytest.mark.parametrize("before", [[], ["failed"], ["failed", "failed", "failed"]])
def test_cancel_of_what_is_not_in_flight_is_at_once(before):
    t = told()
    t.attempt(*before)
    task = t.happens("cancel", detail="cleared")
    assert (task.status, task.reason, task.failures) == (Status.CANCELED, "cleared", 0)
    assert (t.last.outcome, t.last.freed, task.backoff_until) == (None, False, None)


@pytest.mark.parametrize(
    "end", ["stopped", "failed", "launch_failed", "lost", "throttled", "environment", "released"]
)
def test_cancel_in_flight_holds_everything_until_its_end(end):
    t = told()
    t.leased()
    asked = t.happens("cancel", detail="not wanted")
    assert (asked.status, asked.stop_requested) == (Status.LEASED, "cancel: not wanted")
    assert (asked.lease.fence, t.last.freed) == (1, False)
    assert t.happens("cancel") == asked
    assert t.last.events == ()
    task = t.happens(end, detail="exit 130")
    assert (task.status, task.reason) == (Status.CANCELED, "not wanted")
    assert (t.last.outcome, t.last.freed, task.stop_requested) == (Outcome.CANCELED, True, "")


def test_a_success_before_the_stop_wins():
    t = told()
    t.leased()
    assert t.happens("cancel", "succeeded").status is Status.DONE


@pytest.mark.parametrize("end", ["succeeded", "stopped"])
def test_cancel_of_what_has_ended_is_refused(end):
    t = told()
    t.leased()
    t.happens("cancel", end)
    with pytest.raises(IllegalTransition):
        t.happens("cancel")


def test_stopped_needs_somebody_who_asked():
    t = told()
    t.leased()
    with pytest.raises(IllegalTransition, match="stopped"):
        t.happens("stopped")


@pytest.mark.parametrize("end", ["stopped", "failed", "lost", "released"])
def test_a_timeout_counts_as_failed(end):
    t = told(retry__max_attempts=1)
    t.leased()
    t.task = request_stop(t.task, Stop.TIMEOUT, "4h")
    task = t.happens(end, detail="exit 143")
    assert (t.last.outcome, task.reason) == (Outcome.FAILED, "failed: timeout: 4h (attempt 1 of 1)")


@pytest.mark.parametrize("end", ["stopped", "failed", "lost", "released"])
def test_a_budget_stop_counts_as_released(end):
    t = told(retry__max_attempts=1)
    t.leased()
    t.task = request_stop(t.task, Stop.BUDGET, "project:a 50000 tokens")
    task = t.happens(end)
    assert (t.last.outcome, task.status, task.failures) == (Outcome.RELEASED, Status.QUEUED, 0)
    assert t.last.events[0][1]["detail"] == "budget: project:a 50000 tokens"


def test_what_the_provider_says_stands_beside_a_timeout():
    t = told()
    t.leased()
    t.task = request_stop(t.task, Stop.TIMEOUT)
    t.happens("throttled")
    assert t.last.outcome is Outcome.THROTTLED


def test_a_cancel_wins_over_other_stops_and_is_not_overruled():
    task = request_stop(Task("t1"), Stop.BUDGET)
    assert request_stop(task, Stop.TIMEOUT) == task
    task = request_stop(task, Stop.CANCEL, "by ann")
    assert request_stop(task, Stop.TIMEOUT).stop_requested == "cancel: by ann"
    assert stop_kind("somebody said so") is Stop.CANCEL
    assert stop_kind("") is None


# Retry, again, late success.


def test_retry_clears_every_counter():
    t = told()
    t.attempt("launch_failed", "launch_failed", "launch_failed")
    task = t.happens("retry")
    assert (task.status, task.failures, task.launch_failures) == (Status.QUEUED, 0, 0)
    assert (task.reason, task.parked_at, task.attempts) == ("", None, 3)
    assert task.ready_since == t.now


def test_retry_of_what_does_not_wait_is_refused_and_changes_nothing():
    t = told()
    with pytest.raises(IllegalTransition, match="t1 is queued and cannot be retried"):
        t.happens("retry")
    t.attempt("failed")
    t.now = t.task.backoff_until  # the wait is over
    with pytest.raises(IllegalTransition) as refused:
        t.happens("retry")
    assert "waits after a failure" in refused.value.hint


def test_again_is_as_new_but_for_its_attempts():
    t = told()
    t.attempt("failed", "succeeded")
    t.now += 5 * MINUTE
    task = t.happens("again")
    assert (task.status, task.failures, task.attempts) == (Status.QUEUED, 0, 2)
    assert task.created_at == task.ready_since == t.now
    assert t.leased().lease.attempt == 3


def test_not_before_still_counts_after_again():
    later = START + 90 * MINUTE
    t = told(task=Task("t1", status=Status.CANCELED, not_before=later))
    assert t.happens("again").ready_since == later


@pytest.mark.parametrize("losses", [1, 3])
def test_a_late_success_makes_the_lost_attempt_succeed(losses):
    t = told()
    t.attempt(*["lost"] * losses)
    task = t.happens("late_success", lease=Lease("l", t.fence))
    assert (task.status, t.last.outcome, t.last.freed) == (
        Status.DONE,
        Outcome.SUCCEEDED,
        False,
    )
    assert t.last.events[0][1] == {
        "attempt": losses,
        "fence": losses,
        "detail": "",
        "late": True,
    }


def test_a_late_success_comes_too_late():
    t = told()
    t.attempt("lost")
    with pytest.raises(IllegalTransition):
        t.happens("late_success", lease=Lease("older", 0))
    lost = t.task
    for since in (["retry"], ["cancel"]):
        t.task = lost
        t.happens(*since)
        with pytest.raises(IllegalTransition):
            t.happens("late_success")
    t.task = lost
    t.attempt("failed")
    with pytest.raises(IllegalTransition):
        t.happens("late_success")
