"""The plan: reason, wake-up time, holds in order, reclaims, batch, digests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fairlane.model.instant import MINUTE, SECOND
from fairlane.model.plan import Reclaim
from fairlane.model.project import History, Pool, Worker
from fairlane.model.task import Lane, Status, Task
from fairlane.planner import lanes, plan, reference
from fairlane.planner.conclude import digests, snapshot_document
from tests.unit.planner.scene import (
    NOW,
    code,
    hold,
    pause,
    picks,
    planned,
    policy,
    queued,
    running,
    snapshot,
)


def ready(count: int, **fields):
    return [queued(f"t{n}", **fields) for n in range(count)]


@pytest.mark.parametrize(
    ("cap", "batch", "count", "expected"),
    [
        (5, 3, 0, (0, "none")),
        (0, 3, 10, (0, "capacity")),
        (2, 3, 10, (2, "capacity")),
        (10, 3, 10, (3, "batch")),
        (10, 5, 2, (2, "ready")),
        (3, 3, 10, (3, "capacity")),
    ],
)
def test_picks_and_reason(cap, batch, count, expected):
    made = planned(ready(count), policy(caps__all=cap, capacity__batch=batch))
    assert (len(made.picks), made.reason) == expected


def test_what_is_left_is_held_by_other_gates():
    tasks = [queued("a", locks=("x",)), queued("b", locks=("x",))]
    assert planned(tasks).reason == "held"
    assert planned([queued("a", not_before=NOW + 1)]).reason == "none"


def test_full_slots_are_capacity_too():
    assert planned(ready(3), workers=[Worker("box", 1)]).reason == "capacity"


def test_holds_come_in_the_order_of_the_heads_with_five_ids_then_waiting_by_code():
    rules = policy(**{"caps__kind:code": 0, "caps__kind:plan": 0, "order": ["priority"]})
    tasks = [
        queued("late", not_before=NOW + MINUTE),
        queued("back", backoff_until=NOW + SECOND),
        *ready(7, priority=50),
        queued("first", priority=1, kind="plan"),
    ]
    made = planned(tasks, rules)
    assert [(held.hold.code, held.count, held.tasks) for held in made.holds] == [
        ("cap_zero", 1, ("first",)),
        ("cap_zero", 7, ("t0", "t1", "t2", "t3", "t4")),
        ("backoff", 1, ("back",)),
        ("not_before", 1, ("late",)),
    ]
    assert made.wake_at == NOW + SECOND


def test_a_lane_has_its_first_hold_as_of_the_end_of_the_round():
    tasks = [queued("a", pool="p", locks=("x",)), queued("b", pool="p", locks=("x",))]
    assert code("b", tasks, policy(**{"caps__pool:p": 1})) == ("caps", "cap")
    assert code("b", tasks, paused=[pause("pool:p")]) == ("paused", "paused")
    assert code("b", tasks) == ("locks", "lock")


def test_it_wakes_for_the_first_lease_that_is_not_proved_alive():
    tasks = [
        running("gone", expires_at=NOW),
        running("seen", expires_at=NOW + 1, alive=True),
        running("x", expires_at=NOW + 9),
        running("y", expires_at=NOW + 7),
    ]
    assert planned(tasks).wake_at == NOW + 7
    anonymous = [replace(t, lease=replace(t.lease, id="")) for t in tasks if t.lease]
    assert planned(anonymous).wake_at == NOW + 7
    assert planned([running("z"), *ready(1)]).wake_at is None


def test_it_wakes_for_the_parked_task_that_is_tried_once_more():
    seen = snapshot([running("a", expires_at=NOW + 9)])
    parked = replace(seen, half_open_at=NOW + 5)
    for planner in (lanes, reference):
        assert planner.plan(parked, policy(), NOW).wake_at == NOW + 5
        assert planner.plan(parked, policy(), NOW + 5).wake_at == NOW + 9
    assert "half_open_at" not in snapshot_document(seen)  # what was recorded before is the same


def test_it_wakes_when_a_pool_has_rested():
    made = planned(ready(1, pool="p"), pools=[Pool("p", NOW + MINUTE, 1)])
    assert made.wake_at == NOW + MINUTE


@pytest.mark.parametrize(
    ("fields", "follows"),
    [
        ({}, Status.QUEUED),
        ({"failures": 2}, Status.PARKED),
        ({"max_attempts": 1}, Status.PARKED),
        ({"stop_requested": "cancel"}, Status.CANCELED),
        ({"stop_requested": "budget", "failures": 2}, Status.QUEUED),
    ],
)
def test_an_expired_lease_is_reclaimed_with_the_status_that_follows(fields, follows):
    made = planned([running("x", expires_at=NOW, **fields), queued("b")], policy(caps__all=1))
    assert made.reclaims == (Reclaim("x", "l-x", follows),)
    assert [pick.task for pick in made.picks] == ["b"]


def test_a_lease_that_runs_or_whose_process_was_seen_is_not_reclaimed():
    tasks = [running("a", expires_at=NOW + 1), running("b", expires_at=NOW, alive=True)]
    assert planned([*tasks, running("c")]).reclaims == ()


def test_the_batch_counts_the_starts_of_its_interval():
    rules = policy(capacity__batch=3, cycle__interval="10s", caps__all=9)
    begun = {"batch_started": 2, "batch_since": NOW - 4 * SECOND}
    made = planned(ready(5), rules, **begun)
    assert len(made.picks) == 1
    found = made.holds[0].hold
    assert (found.gate, found.code, found.until) == ("batch", "batch", NOW + 6 * SECOND)
    assert made.wake_at == NOW + 6 * SECOND
    over = {"batch_started": 3, "batch_since": NOW - 10 * SECOND}
    assert len(picks(ready(5), rules, **over)) == 3


def test_a_lane_that_another_gate_holds_is_not_held_by_the_batch():
    tasks = [queued("a"), queued("b", locks=("x",)), running("r", locks=("x",)), queued("c")]
    rules = policy(capacity__batch=1)
    assert code("b", tasks, rules) == ("locks", "lock")
    assert hold("c", tasks, rules).reason == "the batch is full: 1 have started in this interval"


def test_estimates_come_from_the_caller_then_history_then_the_policy():
    history = [History("default", "code", None, 77)]
    tasks = [queued("a", estimate_tokens=5), queued("b"), queued("c", agent="claude")]
    made = planned(tasks, history=history)
    assert [pick.estimate for pick in made.picks] == [5, 77, 100_000]


def test_digests_do_not_depend_on_the_planner_and_tell_inputs_apart():
    seen, rules = snapshot(ready(9)), policy()
    fast, plain = lanes.plan(seen, rules, NOW), reference.plan(seen, rules, NOW)
    assert digests(seen, rules, fast) == digests(seen, rules, plain)
    other = snapshot(ready(10))
    names = digests(other, policy(caps__all=2), lanes.plan(other, rules, NOW + MINUTE))
    assert not set(names.values()) & set(digests(seen, rules, fast).values())


def test_plan_takes_a_time_with_a_zone():
    made = plan(snapshot(ready(1)), policy(), datetime(2026, 1, 30, 12, tzinfo=UTC))
    assert (made.now, len(made.picks)) == (NOW, 1)


def test_a_window_that_is_used_up_says_which_lanes_to_read_on():
    seen = snapshot(ready(3))
    lane = seen.lanes[0]
    short = Lane(lane.key, 9, lane.by_ready[:2], lane.by_created[:2])
    with pytest.raises(lanes.WindowUsedUp):
        lanes.plan(replace(seen, lanes=(short,)), policy(caps__all=5), NOW)
    made = lanes.plan(replace(seen, lanes=(short,)), policy(caps__all=1), NOW)
    assert [(held.count, held.tasks) for held in made.holds] == [(8, ("t1",))]


def test_what_joins_a_lane_does_not_come_before_what_was_not_read():
    late = queued("late", age=1, not_before=NOW - 1)
    seen = snapshot([*ready(3, age=9), late])
    lane = seen.lanes[0]
    short = Lane(lane.key, 5, lane.by_ready[:2], lane.by_created[:2])
    with pytest.raises(lanes.WindowUsedUp):
        lanes.plan(replace(seen, lanes=(short,)), policy(caps__all=3), NOW)
    first = Task("early", 9, created_at=1, not_before=2)
    seen = replace(snapshot([*ready(3, age=9), first]), lanes=(short,))
    made = lanes.plan(seen, policy(caps__all=2), NOW)
    assert [pick.task for pick in made.picks] == ["early", "t0"]
    assert made.holds[0].count == 4
