"""Waits: exact, bounded, and the same on every replay."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.lifecycle.backoff import wait_after
from fairlane.model.instant import DAY, MINUTE, SECOND
from fairlane.policy.policy import Retry


def curve(base, factor=2, cap=5 * MINUTE, jitter=0) -> Retry:
    return Retry(3, base, Fraction(factor), cap, Fraction(jitter))


def seconds(retry: Retry, most: int) -> list[int]:
    return [wait_after(retry, n, "t1", n) // SECOND for n in range(1, most + 1)]


def test_the_rows():
    assert seconds(curve(30 * SECOND), 5) == [30, 60, 120, 240, 300]
    assert seconds(curve(SECOND, cap=MINUTE), 8) == [1, 2, 4, 8, 16, 32, 60, 60]
    assert seconds(curve(0), 3) == [0, 0, 0]
    assert seconds(curve(30 * SECOND, factor=1), 3) == [30, 30, 30]
    assert wait_after(curve(SECOND), 0, "t1", 1) == 0


def test_factors_need_not_be_whole():
    assert wait_after(curve(SECOND, factor=Fraction(3, 2)), 4, "t1", 1) == 3_375_000


@pytest.mark.parametrize("factor", [2, Fraction(1001, 1000), 10])
def test_a_huge_count_costs_nothing(factor):
    assert wait_after(curve(1, factor, cap=7 * DAY), 10**12, "t1", 1) == 7 * DAY


def test_a_base_above_the_cap_is_capped():
    assert wait_after(curve(10 * MINUTE), 1, "t1", 1) == 5 * MINUTE


@given(st.text(min_size=1), st.integers(1, 10**6), st.integers(1, 4))
def test_jitter_stays_within_bounds_and_repeats(task, attempt, n):
    retry = curve(30 * SECOND, jitter=Fraction(1, 10), cap=DAY)
    exact = 30 * SECOND * 2 ** (n - 1)
    wait = wait_after(retry, n, task, attempt)
    assert exact * 9 // 10 <= wait <= exact * 11 // 10
    assert wait == wait_after(retry, n, task, attempt)


def test_jitter_is_pinned_so_that_old_records_replay():
    retry = curve(30 * SECOND, jitter=Fraction(1, 10))
    assert [wait_after(retry, 1, "t1", attempt) for attempt in (1, 2)] == [32176758, 28370562]
