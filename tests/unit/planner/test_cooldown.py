"""Gate `cooldown`: a pool rests, then is tried by a probe."""

from __future__ import annotations

import pytest

from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.project import Pool
from fairlane.model.task import Status
from tests.unit.planner.scene import NOW, code, hold, picks, planned, policy, queued, running

PAIR = [queued("a", pool="p"), queued("b", pool="p")]
UNPROVED = Pool("p", NOW - MINUTE, hits=1)


def test_a_pool_that_rests_holds_its_lanes_only():
    pool = Pool("p", NOW + MINUTE, hits=2, cause="429")
    plan = planned([*PAIR, queued("c", pool="q")], pools=[pool])
    assert [pick.task for pick in plan.picks] == ["c"]
    found = plan.holds[0].hold
    assert (found.code, found.until) == ("cooldown", NOW + MINUTE)
    assert found.reason == (
        "pool p cools down until 2026-01-30T12:01:00Z: 429 (throttled 2 in a row)"
    )
    assert plan.wake_at == NOW + MINUTE


def test_after_the_cooldown_one_probe_starts_first():
    plan = planned(PAIR, pools=[UNPROVED])
    assert [pick.task for pick in plan.picks] == ["a"]
    found = plan.holds[0].hold
    assert (found.code, found.until, found.holders) == ("probe", NOW + 60 * SECOND, ("a",))


def test_the_end_of_the_cooldown_is_its_first_instant():
    assert picks(PAIR, pools=[Pool("p", NOW, hits=1)]) == ["a"]


def test_the_policy_may_allow_more_probes():
    assert picks(PAIR, policy(cooldown__probe=2), pools=[UNPROVED]) == ["a", "b"]


@pytest.mark.parametrize(
    "fields",
    [
        {"started_at": NOW - SECOND},
        {"started_at": NOW - 59 * SECOND},
        {"status": Status.LEASED},
    ],
)
def test_a_probe_that_runs_or_is_about_to_holds_the_rest(fields):
    tasks = [running("x", pool="p", **fields), running("old", pool="p", started_at=1), *PAIR]
    assert code("a", tasks, pools=[UNPROVED]) == ("cooldown", "probe")
    assert hold("a", tasks, pools=[UNPROVED]).holders == ("x",)


@pytest.mark.parametrize(
    "fields", [{"started_at": NOW - SECOND, "used": 1}, {"started_at": NOW - 60 * SECOND}]
)
def test_a_probe_that_used_tokens_or_ran_a_minute_has_proved_the_pool(fields):
    assert picks([running("x", pool="p", **fields), *PAIR], pools=[UNPROVED]) == ["a", "b"]


def test_what_began_before_the_cooldown_ended_is_no_probe():
    old = running("old", pool="p", started_at=NOW - MINUTE - 1, used=5)
    assert picks([old, *PAIR], pools=[UNPROVED]) == ["a"]


def test_a_proved_pool_is_open():
    assert picks(PAIR, pools=[Pool("p", NOW - MINUTE)]) == ["a", "b"]


@pytest.mark.parametrize(
    "fields",
    [
        {"started_at": NOW - 60 * SECOND},
        {"started_at": NOW - SECOND, "used": 1},
        {"started_at": NOW - SECOND, "stop_requested": "timeout"},  # it counts as failed
    ],
)
def test_a_probe_that_this_plan_ends_has_proved_the_pool_by_what_it_did(fields):
    tasks = [running("x", pool="p", expires_at=NOW, **fields), *PAIR]
    assert picks(tasks, pools=[UNPROVED]) == ["a", "b"]


def test_nobody_waits_for_a_probe_that_this_plan_ends():
    young = running("x", pool="p", started_at=NOW - 59 * SECOND, expires_at=NOW)
    assert picks([young, *PAIR], pools=[UNPROVED]) == ["a"]
    assert hold("b", [young, *PAIR], pools=[UNPROVED]).holders == ("a",)
