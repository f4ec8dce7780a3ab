"""Gate `worker`: somebody who can run it has a free slot."""

from __future__ import annotations

import pytest

from fairlane.model.project import Worker
from tests.unit.planner.scene import code, hold, planned, policy, queued, running


def placed(tasks, **world):
    return [(pick.task, pick.worker) for pick in planned(tasks, **world).picks]


def test_without_workers_one_is_assumed_with_as_many_slots_as_cap_all():
    plan = planned([running("x"), queued("a"), queued("b")], policy(caps__all=2))
    assert [(pick.task, pick.worker) for pick in plan.picks] == [("a", "local")]


def test_slots_are_a_ceiling():
    tasks = [running("x", worker="box"), queued("a"), queued("b")]
    plan = planned(tasks, workers=[Worker("box", 2)])
    assert [pick.task for pick in plan.picks] == ["a"]
    found = plan.holds[0].hold
    assert (found.code, found.reason) == ("no_slot", "all 2 slots are busy")
    assert found.holders == ("x", "a")
    assert plan.reason == "capacity"


def test_scarce_machines_are_kept_for_those_who_need_them():
    workers = [Worker("big", 9, ("gpu",)), Worker("plain", 1)]
    tasks = [queued("a"), queued("b", labels=("gpu",)), queued("c")]
    assert placed(tasks, workers=workers) == [("a", "plain"), ("b", "big"), ("c", "big")]


def test_then_the_most_free_slots_then_the_name():
    workers = [Worker("c", 2), Worker("b", 3), Worker("a", 2)]
    tasks = [queued(f"t{n}") for n in range(4)]
    assert [worker for _, worker in placed(tasks, workers=workers)] == ["b", "a", "b", "c"]


def test_all_labels_must_be_on_one_worker():
    workers = [Worker("a", 1, ("gpu",)), Worker("b", 1, ("os=linux",))]
    task = queued("t", labels=("gpu", "os=linux"))
    found = hold("t", [task], workers=workers)
    assert (found.code, found.reason) == ("no_label", "no worker has all of gpu, os=linux")


@pytest.mark.parametrize(
    ("fields", "workers", "expected"),
    [
        ({"labels": ("gpu",)}, [Worker("a", 1)], "no_label"),
        ({"labels": ("gpu",)}, [], "no_label"),
        ({"labels": ("gpu",)}, [Worker("a"), Worker("b", 1, ("gpu",), live=False)], "no_worker"),
        ({"agent": "who"}, [Worker("a", 1)], "unknown_agent"),
    ],
)
def test_what_nothing_will_free_is_misconfigured(fields, workers, expected):
    tasks = [queued("t", **fields)]
    found = hold("t", tasks, workers=workers, agents=("claude",))
    assert (found.gate, found.code, found.misconfigured) == ("worker", expected, True)


def test_a_worker_that_is_not_seen_gets_nothing():
    workers = [Worker("a", 1, live=False), Worker("b", 1)]
    tasks = [queued("t"), queued("u")]
    assert placed(tasks, workers=workers) == [("t", "b")]
    assert code("u", tasks, workers=workers) == ("worker", "no_slot")
