"""No attempt follows another at once where nothing has changed in between."""

from __future__ import annotations

import pytest

from fairlane.model.instant import HOUR, SECOND
from fairlane.model.task import Status, Task
from tests.unit.lifecycle.story import START, told


def waits(t, end, times, **options):
    found = []
    for _ in range(times):
        t.attempt(end, **options)
        found.append(t.wait)
    return found


def test_a_throttle_without_a_pool_is_waited_for_by_the_task():
    t = told()
    assert waits(t, "throttled", 8) == [2, 4, 8, 16, 32, 64, 64, 64]
    assert (t.task.failures, t.task.attempts, t.task.ready_since) == (0, 8, START)
    assert [kind for kind, _ in t.last.events] == ["throttled", "backoff"]


def test_a_throttle_is_waited_for_as_long_as_the_provider_asked():
    t = told()
    assert waits(t, "throttled", 1, asked_until=START + HOUR) == [3600]
    t = told()
    assert waits(t, "throttled", 1, asked_until=START + SECOND) == [2]


def test_another_end_breaks_the_row_of_throttles():
    t = told()
    t.attempt("throttled", "throttled", "failed", "throttled")
    assert t.wait == 2


def test_a_throttle_with_a_pool_is_the_matter_of_the_pool():
    t = told(task=Task("t1", created_at=START, pool="anthropic"))
    assert waits(t, "throttled", 2, asked_until=START + HOUR) == [0, 0]


@pytest.mark.parametrize("end", ["launch_failed", "environment"])
def test_without_a_base_what_cannot_start_waits_as_a_pool_does(end):
    t = told("depth-first")
    assert waits(t, end, 7) == [2, 4, 8, 16, 32, 64, 64]
    assert t.task.status is Status.QUEUED
    if end == "launch_failed":
        assert t.task.ready_since == t.task.backoff_until
        t.attempt("failed")
        assert t.wait == 0  # the work itself is tried again at once
        t.attempt(end)
        assert t.wait == 2


@pytest.mark.parametrize("end", ["launch_failed", "environment"])
def test_a_longer_wait_of_the_retries_wins(end):
    t = told(cooldown__base="45s", breaker__launch_failures="none", retry__max_attempts=9)
    assert waits(t, end, 3) == [45, 90, 180]
    t = told(breaker__launch_failures="none", retry__max_attempts=9)
    assert waits(t, end, 3) == [30, 60, 120]


def test_without_a_base_the_second_release_in_a_row_waits_too():
    t = told("depth-first")
    assert waits(t, "released", 4) == [0, 2, 4, 8]
