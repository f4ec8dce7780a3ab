"""Why, out of the store: what it proposes starts the task when somebody does it."""

from __future__ import annotations

import pytest

from fairlane.model.instant import MINUTE
from fairlane.service.explain import why


def proposals(office, task):
    return [row["apply"] for row in why(office.context, task)["would_start_if"]]


def starts_after(office, lease):
    office.finish(lease["lease"], output=lease["estimate_tokens"])
    return [row["task"] for row in office.lease()]


@pytest.mark.parametrize("tie", ["parent", "needs"])
def test_what_would_follow_the_task_that_ends_wants_the_slot_too(office, tie):
    office.policy("[caps]\nall = 1")
    told = {"parent": "first"} if tie == "parent" else {"needs": ["first"]}
    office.add({"id": "first", "priority": 1})
    office.add({"id": "late"}, {"id": "follower", "priority": 50} | told)
    lease = office.lease()[0]
    assert lease["task"] == "first"
    assert proposals(office, "late") == [{"policy": {"caps.all": 2}}]
    assert {"end": "first"} in proposals(office, "follower")
    assert starts_after(office, lease) == ["follower"]


def test_who_becomes_ready_by_an_end_is_ready_from_then_on(office):
    office.policy('order = ["age"]\n[caps]\nall = 1')
    office.add({"id": "first"}, {"id": "follower", "needs": ["first"]})
    office.wait(MINUTE)
    office.add({"id": "second"})
    lease = office.lease()[0]
    office.wait(MINUTE)
    assert proposals(office, "second")[0] == {"end": "first"}
    assert {"end": "first"} not in proposals(office, "follower")
    assert starts_after(office, lease) == ["second"]


def test_a_ready_child_of_the_same_parent_is_ahead_once(office):
    office.add({"id": "parent", "priority": 1})
    office.finish(office.lease()[0]["lease"])
    office.add({"id": "elder", "parent": "parent"})
    office.wait(MINUTE)
    office.add({"id": "younger", "parent": "parent"})
    answer = why(office.context, "younger")
    assert (answer["position"], answer["ahead"]) == (2, ["elder"])


@pytest.mark.parametrize("kinds", [("code",), ("code", "plan", "review")])
def test_a_place_is_exact_however_much_of_the_queue_it_takes(office, kinds):
    none = '[backpressure]\nsoft = "none"\nhard = "none"\n'
    office.policy(f'order = ["age"]\n{none}[caps]\nall = 1')
    office.add(*({"id": f"x{n}", "kind": kinds[n % len(kinds)]} for n in range(1, 1202)))
    for place in (1, 2, 40, 300, 1000):
        answer = why(office.context, f"x{place}")
        assert answer["position"] == place
        assert answer["ahead"] == [f"x{n}" for n in range(1, min(place, 11))]
    assert why(office.context, "x1001")["position"] is None
