"""Providers: windows of requests and tokens, plans that reset, outages."""

from __future__ import annotations

import pytest

from fairlane.model.instant import HOUR, MINUTE, SECOND
from fairlane.model.task import Outcome
from fairlane.simulation.provider import REFUSAL, Limits, Outage, Provider, Quota, Refusal
from fairlane.simulation.world import Fate

NOON = 1_800_000_000 * SECOND
WORK = Fate(10 * MINUTE, tokens=(100, 200, 300, 0), usd=6_000, reports=3)


def provider(*quotas: Quota, outages: tuple[Outage, ...] = ()) -> Provider:
    return Provider({"a": Limits(quotas, outages)})


def test_a_pool_without_limits_admits_everything():
    one = provider(Quota(MINUTE, requests=1))
    for pool in (None, "b"):
        assert [one.admit(pool, WORK, NOON) for _ in range(3)] == [WORK] * 3
        assert one.use(pool, 10**9, NOON) is None
        assert not one.watches(pool)
    assert one.watches("a")


def test_a_rate_limit_asks_to_wait_for_the_rest_of_its_window():
    one = provider(Quota(MINUTE, requests=2))
    assert one.admit("a", WORK, NOON) == WORK
    assert one.admit("a", WORK, NOON + 20 * SECOND) == WORK
    refused = one.admit("a", WORK, NOON + 45 * SECOND)
    assert refused.outcome is Outcome.THROTTLED
    assert (refused.lasts, refused.tokens, refused.usd) == (REFUSAL, (0, 0, 0, 0), 0)
    assert (refused.retry_after, refused.resets_at) == (15 * SECOND, None)
    assert one.admit("a", WORK, NOON + MINUTE) == WORK, "a new window"


def test_a_plan_says_when_it_opens_again():
    one = provider(Quota(5 * HOUR, tokens=1_000, resets=True))
    assert one.request("a", NOON) is None
    assert one.use("a", 999, NOON + HOUR) is None
    assert one.use("a", 1, NOON + HOUR) == Refusal(resets_at=NOON + 5 * HOUR)
    assert one.request("a", NOON + 2 * HOUR) == Refusal(resets_at=NOON + 5 * HOUR)
    assert one.request("a", NOON + 5 * HOUR) is None


def test_the_next_window_begins_with_the_next_request():
    one = provider(Quota(MINUTE, requests=1))
    assert one.request("a", NOON) is None
    assert one.request("a", NOON + 10 * MINUTE) is None
    refusal = one.request("a", NOON + 10 * MINUTE + 50 * SECOND)
    assert refusal == Refusal(retry_after=10 * SECOND)


def test_of_several_quotas_the_one_that_lasts_longest_decides():
    one = provider(Quota(MINUTE, requests=1), Quota(5 * HOUR, tokens=10, resets=True))
    assert one.request("a", NOON) is None
    assert one.request("a", NOON) == Refusal(retry_after=MINUTE)
    assert one.use("a", 10, NOON) == Refusal(resets_at=NOON + 5 * HOUR)
    assert one.request("a", NOON) == Refusal(resets_at=NOON + 5 * HOUR)


def test_used_up_requests_do_not_end_attempts_that_run():
    one = provider(Quota(MINUTE, requests=1, tokens=100))
    assert one.request("a", NOON) is None
    assert one.use("a", 50, NOON) is None
    assert one.use("a", 50, NOON) == Refusal(retry_after=MINUTE)


def test_refused_requests_do_not_count():
    one = provider(Quota(MINUTE, requests=1), Quota(HOUR, requests=2))
    assert one.request("a", NOON) is None
    assert all(one.request("a", NOON + second * SECOND) for second in range(1, 50))
    assert one.request("a", NOON + MINUTE) is None, "the hour still has one"
    assert one.request("a", NOON + 2 * MINUTE) == Refusal(retry_after=58 * MINUTE)


@pytest.mark.parametrize(
    ("outcome", "retry_after"),
    [(Outcome.THROTTLED, 30 * SECOND), (Outcome.FAILED, None), (Outcome.ENVIRONMENT, None)],
)
def test_an_outage_refuses_and_cuts_off(outcome, retry_after):
    outage = Outage(NOON + HOUR, NOON + 2 * HOUR, outcome, 30 * SECOND)
    one = provider(outages=(outage,))
    assert one.admit("a", WORK, NOON) == WORK
    cut = one.admit("a", WORK, NOON + HOUR - 4 * MINUTE)
    assert (cut.lasts, cut.outcome, cut.retry_after) == (4 * MINUTE, outcome, retry_after)
    assert (cut.tokens, cut.usd) == ((40, 80, 120, 0), 2_400)
    refused = one.admit("a", WORK, NOON + HOUR)
    assert (refused.lasts, refused.outcome, refused.tokens) == (REFUSAL, outcome, (0, 0, 0, 0))
    assert one.admit("a", WORK, NOON + 2 * HOUR) == WORK


@pytest.mark.parametrize("turn", [1, -1])
def test_of_several_outages_the_first_in_time_cuts_off(turn):
    outages = tuple(Outage(NOON + at * MINUTE, NOON + (at + 1) * MINUTE) for at in (2, 7))
    assert provider(outages=outages[::turn]).admit("a", WORK, NOON).lasts == 2 * MINUTE


def test_a_fate_of_unknown_cost_stays_so():
    one = provider(outages=(Outage(NOON, NOON + HOUR),))
    assert one.admit("a", Fate(MINUTE), NOON).usd is None
