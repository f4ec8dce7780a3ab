"""Gate `locks`: one holder per lock."""

from __future__ import annotations

from typing import Any

from tests.unit.planner.scene import NOW, code, hold, picks, policy, queued, running


def test_a_lock_in_flight_holds_every_lane_that_needs_it():
    tasks = [running("x", locks=("db",)), queued("a", locks=("db", "ui")), queued("b")]
    assert picks(tasks) == ["b"]
    found = hold("a", tasks)
    assert (found.gate, found.code, found.holders) == ("locks", "lock", ("x",))
    assert found.reason == "lock db is held by x"


def test_two_picks_of_one_round_do_not_share_a_lock():
    tasks = [queued("a", locks=("db",)), queued("b", locks=("db",)), queued("c", locks=("ui",))]
    assert picks(tasks) == ["a", "c"]


def test_an_expired_lease_holds_no_lock():
    assert picks([running("x", locks=("db",), expires_at=NOW), queued("a", locks=("db",))]) == ["a"]


def test_what_is_not_parallel_locks_its_group_and_kind():
    one: dict[str, Any] = {"group": "g", "kind": "review", "parallel": False}
    tasks = [queued("a", **one), queued("b", **one), queued("c", **(one | {"kind": "code"}))]
    assert sorted(picks(tasks)) == ["a", "c"]
    assert hold("b", tasks).reason == "serial lock g+review is held by a"


def test_without_a_group_the_project_stands_in_its_place():
    tasks = [queued(f"{p}{n}", project=p, parallel=False) for n in (1, 2) for p in ("web", "api")]
    assert sorted(picks(tasks)) == ["api1", "web1"]


def test_a_parallel_task_ignores_the_serial_lock():
    tasks = [running("x", parallel=False), queued("a", parallel=True), queued("b", parallel=False)]
    assert picks(tasks) == ["a"]
    assert code("b", tasks) == ("locks", "lock")


def test_the_policy_says_what_a_task_is_that_does_not():
    tasks = [queued("a"), queued("b")]
    assert picks(tasks, policy(locks__parallel_default=False)) == ["a"]
    rules = policy(locks__parallel_default=False, locks__serial="none")
    assert picks(tasks, rules) == ["a", "b"]
