"""The queue warns when it is deep, and takes nothing more when it is too deep."""

from __future__ import annotations

import pytest

from fairlane.model.project import WorkerRow
from fairlane.page.views.scene import scene
from fairlane.service import tasks
from fairlane.service.reports.status import status
from tests.unit.contexts import NOON

SERIAL = 'preset = "serial-lanes"\n[caps]\nall = 1\n[backpressure]\nsoft = 1\nhard = 2\n'
NARROW = "caps.all = 1\nbackpressure.soft = 1\nbackpressure.hard = 2\n"


def add(office, *records):
    return tasks.add(office.context, records)


@pytest.mark.parametrize("cycles", [False, True])
@pytest.mark.parametrize("policy", [SERIAL, NARROW])
def test_room_counts_then_a_warning_then_deferred(office, policy, cycles):
    office.policy(policy)
    answers = []
    for name in "abcd":
        answers.append(add(office, {"id": name}))
        if cycles:
            office.lease()
    assert [answer["deferred"] for answer in answers] == [False, False, False, True]
    warnings = [answer["tasks"][0].get("warning") for answer in answers[:3]]
    kinds = [1, 2] if cycles else [2, 3]
    assert warnings == [
        None,
        f"the queue is 1 deep (soft limit 1): code {kinds[0]}",
        f"the queue is 2 deep (soft limit 1): code {kinds[1]}",
    ]
    assert office.count() == 3


def test_a_deferred_call_stores_nothing_and_says_why(office):
    office.policy(NARROW)
    answer = add(office, {"kind": "review"}, *({} for _ in range(3)))
    assert answer["tasks"] == []
    assert answer["code"] == "deferred"
    assert answer["message"] == (
        "deferred: the queue would be 3 deep (hard limit 2): code 3, review 1"
    )
    assert "Nothing was added" in answer["hint"]
    assert add(office, {})["tasks"][0]["id"] == "t1"


def test_what_is_known_is_not_deferred(office):
    office.policy(NARROW)
    add(office, {"id": "a"}, {"id": "b"}, {"id": "c"})
    assert add(office, {"id": "a"})["deferred"] is False


def test_status_warns_by_the_same_rule_and_tells_the_depth_by_kind(office):
    office.policy(NARROW)
    said = []
    for name, kind in (("a", "code"), ("b", "review"), ("c", "code")):
        row = add(office, {"id": name, "kind": kind})["tasks"][0]
        warnings = status(office.context)["warnings"]
        assert [each["code"] for each in warnings] == ["backpressure"] * ("warning" in row)
        said += [each["message"] for each in warnings]
        assert scene(office.context).warnings == warnings
    start, more = "starts are delayed: the queue is", "To run more at once, raise caps.all (now 1)"
    assert said == [
        f"{start} 1 deep (soft limit 1): code 1, review 1. {more}",
        f"{start} 2 deep (soft limit 1): code 2, review 1. {more}",
    ]
    office.finish(office.lease()[0]["lease"])
    assert [each["code"] for each in status(office.context)["warnings"]] == ["backpressure"]
    office.finish(office.lease()[0]["lease"])
    assert status(office.context)["warnings"] == []


def test_waiting_tasks_count(office):
    office.policy(NARROW)
    add(office, {"id": "a"}, {"id": "b", "needs": ["a"]}, {"id": "c", "needs": ["a"]})
    assert add(office, {"id": "d"})["deferred"] is True


def test_without_limits_nothing_is_measured(office):
    assert "warning" not in add(office, *({} for _ in range(50)))["tasks"][-1]


def test_the_slots_of_live_workers_are_room_too(office):
    office.policy("caps.all = 8\nbackpressure.soft = 1\n")
    with office.context.store.write() as tx:
        tx.put(WorkerRow("box", "box", 2, (), NOON))
        tx.put(WorkerRow("gone", "gone", 5, (), 0))
    rows = add(office, {}, {}, {})["tasks"]
    assert ["warning" in row for row in rows] == [False, False, True]


def test_without_a_cap_the_slots_of_the_settings_are_the_room(office):
    office.policy('caps.all = "none"\nbackpressure.soft = 1\n')
    rows = add(office, *({} for _ in range(5)))["tasks"]
    assert ["warning" in row for row in rows] == [False] * 4 + [True]
