"""Gate `budget`: nothing starts where spent and reserved reach the limit."""

from __future__ import annotations

import pytest

from fairlane.model.instant import HOUR, parse_instant
from fairlane.model.project import Budget, Group, History, Project, Usage
from tests.unit.planner.scene import NOW, code, hold, picks, policy, queued, running

ALL = [{"scope": "all", "tokens": 100_000, "window": "24h"}]


@pytest.mark.parametrize(("used", "expected"), [(100_000, []), (99_999, ["a"]), (100_001, [])])
def test_the_last_start_may_overshoot_and_no_other(used, expected):
    projects = [Project("web", tokens=used)]
    tasks = [queued("a", project="web"), queued("b", project="web")]
    assert picks(tasks, policy(budget=ALL), projects=projects) == expected


def test_what_is_in_flight_is_reserved():
    busy = running("x", estimate=60_000, used=20_000)  # 20,000 used and 40,000 reserved
    rules = policy(budget=[{"scope": "all", "tokens": 60_001}])
    assert picks([busy, queued("a")], rules) == ["a"]
    rules = policy(budget=[{"scope": "all", "tokens": 60_000}])
    assert code("a", [busy, queued("a")], rules) == ("budget", "budget")


def test_an_expired_lease_reserves_nothing():
    busy = running("x", estimate=60_000, expires_at=NOW)
    assert picks([busy, queued("a")], policy(budget=[{"scope": "all", "tokens": 1}])) == ["a"]


@pytest.mark.parametrize("scope", ["project:web", "pool:p", "group:top", "all"])
def test_every_scope_that_covers_it_counts(scope):
    task = queued("a", project="web", pool="p", group="sub")
    rules = policy(budget=[{"scope": scope, "tokens": 10}])
    world = {"groups": [Group("sub", "top")], "usage": [Usage(scope, tokens=10)]}
    assert code("a", [task, queued("free")], rules, **world) == ("budget", "budget")
    free = [] if scope == "all" else ["free"]
    assert picks([task, queued("free")], rules, **world) == free


def test_a_project_has_budgets_of_its_own():
    project = Project("web", budgets=(Budget("project:web", tokens=5),), tokens=5)
    assert code("a", [queued("a", project="web")], projects=[project]) == ("budget", "budget")


def test_it_frees_when_enough_has_left_the_window():
    leaves = ((NOW - 1, 10, 0), (NOW + HOUR, 5, 0), (NOW + 2 * HOUR, 20, 0))
    usage = [Usage("all", "24h", tokens=50, leaves=leaves)]
    found = hold("a", [queued("a")], policy(budget=[{"scope": "all", "tokens": 30}]), usage=usage)
    assert found.until == NOW + 2 * HOUR  # 40 now, 35 in an hour, 15 in two
    assert found.reason == (
        "budget of all (24h) is used up: 40 tokens used of 30 tokens, frees at 2026-01-30T14:00:00Z"
    )


@pytest.mark.parametrize(
    ("window", "until"),
    [("day", "2026-01-31"), ("week", "2026-02-02"), ("month", "2026-02-01"), ("total", None)],
)
def test_a_window_of_the_calendar_frees_when_it_ends(window, until):
    rules = policy(budget=[{"scope": "all", "tokens": 50, "window": window}])
    found = hold("a", [queued("a")], rules, usage=[Usage("all", tokens=50)])
    assert found.until == (until and parse_instant(f"{until}T00:00:00Z"))
    busy = running("x", estimate=50)  # reserved tokens do not leave with the day
    assert hold("a", [busy, queued("a")], rules, usage=[Usage("all", tokens=50)]).until is None


def test_each_budget_sees_its_own_window():
    usage = [Usage("all", "5h", tokens=5), Usage("all", "24h", tokens=500)]
    rules = policy(budget=[{"scope": "all", "tokens": 50, "window": "5h"}])
    assert picks([queued("a")], rules, usage=usage) == ["a"]


def test_dollars_are_reserved_by_what_tokens_have_cost():
    history = [History("default", "code", None, 1_000, tokens=2_000, usd=500_000)]
    rules = policy(budget=[{"scope": "all", "usd": "0.50"}])
    tasks = [queued("a"), queued("b"), queued("c")]  # $0.25 each
    assert picks(tasks, rules, history=history) == ["a", "b"]
