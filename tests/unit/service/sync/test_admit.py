"""A queue that is too short for a source takes item by item what fits, and the rest later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairlane.model.errors import TryLater
from tests.unit.contexts import TestContext
from tests.unit.service.test_importing import bring, created, item, task


def deferred(answer: dict[str, Any]) -> list[str]:
    assert {row["reason"] for row in answer["deferred"]} <= {"the queue is full: hard limit 2"}
    return [row["id"] for row in answer["deferred"]]


def finish_next(office: TestContext) -> None:
    (lease,) = office.lease()
    office.finish(lease["lease"])


NARROW = "caps.all = 1\n[backpressure]\nsoft = 1\nhard = 2\n"  # one starts, two may wait


def test_a_full_queue_defers_item_by_item_and_goes_on_when_there_is_room(office):
    office.policy(NARROW)
    items = [item(name) for name in "abcdef"]
    answer = bring(office, *items)
    assert (created(answer), deferred(answer)) == (["a", "b", "c"], ["d", "e", "f"])
    with pytest.raises(TryLater, match="deferred: the queue is full") as refusal:
        bring(office, *items)
    assert (refusal.value.exit_code, refusal.value.error_code) == (75, "deferred")
    answer = bring(office, *items, sync=True)
    assert (created(answer), deferred(answer)) == ([], ["d", "e", "f"])
    assert answer["unchanged"] == ["a", "b", "c"]
    finish_next(office)
    answer = bring(office, *items, sync=True)
    assert (created(answer), deferred(answer)) == (["d"], ["e", "f"])


def test_what_others_need_enters_first_and_what_is_urgent(office):
    office.policy(NARROW)
    items = [item("a", "c"), item("b", "a"), item("c"), item("d", priority=1)]
    answer = bring(office, *items)
    assert (created(answer), deferred(answer)) == (["a", "c", "d"], ["b"])
    finish_next(office)
    answer = bring(office, *items)
    assert (created(answer), deferred(answer)) == (["b"], [])
    assert task(office, "b").needs == ("a",)


def test_what_its_source_holds_never_keeps_out_what_could_start(office):
    office.policy("caps.all = 1\nbackpressure = {soft = 1, hard = 2}\n")
    blocked = [item(f"b{number}", blocked="waits there") for number in range(3)]
    needing = item("n", "b0")
    answer = bring(office, *blocked, needing, item("x"))
    assert (created(answer), deferred(answer)) == (["b0", "x"], ["b1", "b2", "n"])
    answer = bring(office, *blocked, needing, item("x"), item("y"), item("z"))
    assert (created(answer), deferred(answer)) == (["y"], ["b1", "b2", "n", "z"])
    finish_next(office)
    answer = bring(office, *blocked, needing, item("x"), item("y"), item("z"))
    assert (created(answer), deferred(answer)) == (["z"], ["b1", "b2", "n"])


def test_a_known_task_waits_for_an_item_that_is_deferred(office):
    office.policy(NARROW)
    bring(office, item("a"), item("b"), item("c"))
    answer = bring(office, item("a", "d"), item("b"), item("c"), item("d"))
    assert deferred(answer) == ["d"]
    assert task(office, "a").source_hold == "needs d, which is not imported"
    finish_next(office)
    bring(office, item("a", "d"), item("b"), item("c"), item("d"))
    assert (task(office, "a").source_hold, task(office, "a").needs) == ("", ("d",))


def test_what_its_source_parked_needs_no_room(office):
    office.policy(NARROW)
    bring(office, item("a"), item("b"), item("c"))
    office.policy(NARROW.replace("soft = 1\nhard = 2", "soft = 0\nhard = 0"))
    parked = replace(item("p"), parked="broken there")
    child = replace(item("q", parent="d"), parked="broken too")
    answer = bring(office, item("a"), item("b"), item("c"), item("d"), parked, child)
    assert (created(answer), task(office, "p").status) == (["p"], "parked")
    reasons = {row["id"]: row["reason"] for row in answer["deferred"]}
    assert reasons == {
        "d": "the queue is full: hard limit 0",
        "q": "its parent 'd' is not known",
    }


def test_one_that_returns_waits_for_room_too(office):
    office.policy(NARROW)
    bring(office, item("a"), item("b"), item("c"))
    bring(office, item("b"), item("c"), sync=True)
    bring(office, item("b"), item("c"), item("d"))
    answer = bring(office, item("a"), item("b"), item("c"), item("d"), sync=True)
    assert deferred(answer) == ["a"]
    assert task(office, "a").status == "canceled"
    finish_next(office)
    answer = bring(office, item("a"), item("b"), item("c"), item("d"), sync=True)
    assert (created(answer), task(office, "a").status) == (["a"], "queued")
