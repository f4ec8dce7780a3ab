"""A failing check resumes the session at once; after some rounds in a row it is a failure."""

from __future__ import annotations

import pytest

from fairlane.lifecycle.step import Step, step
from fairlane.lifecycle.transitions import Stop, request_stop
from fairlane.model.event import Happening
from fairlane.model.task import Lease, Outcome, Status, Task
from fairlane.policy.policy import Policy

BALANCED = Policy.preset("balanced")
DETAIL = "check make test: exit 2"
NOW = 6_000_000_000


def ended(task: Task, *, resumes: bool = True, policy: Policy = BALANCED) -> Step:
    number = task.attempts + 1
    leased = step(task, Happening.LEASED, policy, NOW, lease=Lease(f"L{number}", number)).task
    started = step(leased, Happening.STARTED, policy, NOW).task
    return step(
        started,
        Happening.CHECK_FAILED,
        policy,
        NOW,
        detail=DETAIL,
        resumes=resumes,
        check="make test",
    )


def test_it_is_queued_at_once_with_its_place_and_no_failure():
    after = ended(Task("t1", ready_since=7))
    assert after.outcome is Outcome.CHECK_FAILED
    task = after.task
    assert (task.status, task.failures, task.backoff_until) == (Status.QUEUED, 0, None)
    assert (task.ready_since, task.check_rounds, task.reason) == (7, 1, DETAIL)
    assert [kind for kind, _ in after.events] == ["check_failed"]


def test_after_the_last_round_it_counts_as_a_failure_and_the_row_begins_anew():
    task = Task("t1")
    for failures, rounds in ((0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)):
        after = ended(task)
        assert after.outcome is Outcome.CHECK_FAILED
        task = after.task
        assert (task.failures, task.check_rounds) == (failures, rounds)
    assert task.reason == "failed: check make test (attempt 2 of 3)"
    for _ in range(3):
        after = ended(task)
        task = after.task
    assert [kind for kind, _ in after.events] == ["check_failed", "parked"]
    assert after.events[0][1]["check"] == "make test"
    assert (task.status, task.reason) == (Status.PARKED, "failed: check make test (attempt 3 of 3)")


def test_an_agent_that_cannot_resume_fails_at_its_first_failing_check():
    task = ended(Task("t1"), resumes=False).task
    assert (task.failures, task.check_rounds) == (1, 0)
    assert task.backoff_until is not None


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_the_policy_says_how_many_rounds(rounds):
    policy, task = BALANCED.with_overrides({"checks": {"rounds": rounds}}), Task("t1")
    for _ in range(rounds):
        task = ended(task, policy=policy).task
        assert task.failures == 0
    assert ended(task, policy=policy).task.failures == 1


def test_a_cancel_wins():
    leased = step(Task("t1"), Happening.LEASED, BALANCED, NOW, lease=Lease("L1", 1)).task
    asked = request_stop(leased, Stop.CANCEL)
    after = step(asked, Happening.CHECK_FAILED, BALANCED, NOW, detail=DETAIL, resumes=True)
    assert (after.task.status, after.outcome) == (Status.CANCELED, Outcome.CANCELED)
