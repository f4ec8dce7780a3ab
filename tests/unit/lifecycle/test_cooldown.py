"""A throttle cools its pool down once, and only what began later proves it healthy."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.lifecycle.backoff import prove, throttle
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND
from fairlane.model.project import Pool
from fairlane.model.task import Outcome
from fairlane.policy.policy import Policy

POLICY = Policy.preset("depth-first")
NOW = 1_000 * SECOND
FRESH = Pool("anthropic")


def hit(pool: Pool, now: int = NOW, started: int | None = None, **said) -> Any:
    return throttle(pool, POLICY, now, now if started is None else started, **said)


def test_hits_double_the_wait_to_the_sixth():
    pool: Any = FRESH
    now, waits = NOW, []
    for _ in range(7):
        pool = hit(pool, now, retry_after=0, cause="429")
        waits.append((pool.until - now) // SECOND)
        now = pool.until  # the probe starts when it ends, and is throttled too
    assert waits == [2, 4, 8, 16, 32, 64, 64]
    assert (pool.hits, pool.cause) == (7, "429")


def test_the_provider_may_say_more():
    assert hit(FRESH, retry_after=100 * SECOND).until == NOW + 100 * SECOND
    assert hit(FRESH, retry_after=SECOND).until == NOW + 2 * SECOND
    assert hit(FRESH).until == NOW + 2 * SECOND  # not said


def test_a_used_up_window_cools_until_it_opens_and_a_minute():
    assert hit(FRESH, resets_at=NOW + 5 * HOUR).until == NOW + 5 * HOUR + MINUTE


def test_no_provider_is_believed_for_longer_than_eight_days():
    assert hit(FRESH, retry_after=10**9 * SECOND).until == NOW + 8 * DAY
    assert hit(FRESH, resets_at=NOW + 400 * DAY).until == NOW + 8 * DAY + MINUTE
    cooling = hit(FRESH, retry_after=10 * SECOND)
    assert hit(cooling, NOW + SECOND, retry_after=400 * DAY).until == NOW + SECOND + 8 * DAY


def test_ten_tasks_with_the_same_throttle_are_one_hit():
    pool = FRESH
    for seconds in range(10):
        pool = hit(pool, NOW + seconds * SECOND, started=NOW - 60 * SECOND, retry_after=0)
    assert (pool.hits, pool.until) == (1, NOW + 2 * SECOND)


def test_news_of_an_old_throttle_may_only_extend():
    first = hit(FRESH, retry_after=10 * SECOND, cause="429")
    longer = hit(first, NOW + SECOND, retry_after=60 * SECOND, cause="window")
    assert (longer.hits, longer.until, longer.cause) == (1, NOW + 61 * SECOND, "window")
    assert hit(longer, NOW + 2 * SECOND, retry_after=SECOND) == longer
    late = NOW + HOUR  # the cooldown is over, but this attempt began before it ended
    assert hit(longer, late, started=NOW, retry_after=0) == longer
    assert hit(longer, late, started=NOW, retry_after=5 * SECOND).until == late + 5 * SECOND


def test_a_success_that_began_before_the_end_proves_nothing():
    pool = hit(FRESH)
    assert prove(pool, NOW - 1, Outcome.SUCCEEDED) == pool
    assert prove(pool, pool.until - 1, Outcome.SUCCEEDED) == pool
    healthy = prove(pool, pool.until, Outcome.SUCCEEDED)
    assert (healthy.hits, healthy.cause) == (0, "")


@pytest.mark.parametrize(
    ("news", "proves"),
    [
        ({"outcome": Outcome.FAILED}, True),
        ({"used": 1}, True),
        ({"ran": 60 * SECOND}, True),
        ({"ran": 59 * SECOND}, False),
        ({"outcome": Outcome.LOST}, False),
        ({"outcome": Outcome.THROTTLED, "used": 500, "ran": HOUR}, False),
        ({}, False),
    ],
)
def test_what_proves_a_pool_healthy(news, proves):
    pool = hit(FRESH)
    assert (prove(pool, pool.until, **news).hits == 0) is proves


def test_a_straggler_after_the_proof_is_no_new_hit():
    pool = hit(FRESH)
    healthy = prove(pool, pool.until, Outcome.SUCCEEDED)
    assert hit(healthy, pool.until + SECOND, started=NOW).hits == 0
    assert hit(healthy, pool.until + SECOND).hits == 1  # counted from one again
    assert prove(FRESH, NOW, Outcome.SUCCEEDED) is FRESH
