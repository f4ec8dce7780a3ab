"""Expired leases: the planner's answer is the one that `step` gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.lifecycle.step import step
from fairlane.lifecycle.transitions import expired, status_after_loss
from fairlane.model.event import Happening
from fairlane.model.snapshot import in_flight_of
from fairlane.model.task import Lease, Status, Task
from fairlane.policy.policy import Policy

POLICIES = [
    Policy.preset(name) for name in ("balanced", "depth-first", "fail-closed", "batch-dispatch")
]


def running(**fields) -> Task:
    return Task("t1", seq=1, status=Status.RUNNING, **fields)


@pytest.mark.parametrize(
    ("lease", "over"),
    [
        (Lease(expires_at=99), True),
        (Lease(expires_at=100), True),
        (Lease(expires_at=101), False),
        (Lease(expires_at=99, alive=True), False),
        (Lease(expires_at=None), False),
    ],
)
def test_expired(lease, over):
    assert expired(in_flight_of(running(lease=lease)), 100) is over


@given(
    st.sampled_from(POLICIES),
    st.integers(0, 25),
    st.integers(0, 5),
    st.none() | st.integers(1, 6),
    st.sampled_from(["", "cancel: no", "timeout: 4h", "budget"]),
    st.booleans(),
)
def test_the_plan_says_what_the_step_does(policy, failures, launches, most, stop, half_opened):
    task = running(
        failures=failures,
        launch_failures=min(launches, failures),
        max_attempts=most,
        stop_requested=stop,
        half_opened=half_opened,
        lease=Lease("l1", 1),
    )
    said = status_after_loss(in_flight_of(task), policy, stop)
    assert step(task, Happening.LOST, policy, 0).task.status is said
