"""What the page draws: what starts next, who ran when, throughput and waits, shares."""

from __future__ import annotations

import pytest

from fairlane.engine.look.planned import preview
from fairlane.model.instant import HOUR, MINUTE, SECOND, Instant, show_instant
from fairlane.service import projects, queue
from fairlane.service.reports import timeline
from fairlane.service.reports.stats import share_rows
from tests.unit.contexts import NOON


def bars(office, since: Instant):
    with office.context.store.read() as reading:
        return timeline.bars_since(reading, since, office.context.now())


def buckets(office, since: Instant):
    with office.context.store.read() as reading:
        return timeline.buckets(reading, office.context.policy(), since, office.context.now())


def next_up(office, most: int = 7) -> list[timeline.UpcomingDocument]:
    with office.context.store.read() as reading:
        snapshot, plan, policy = preview(office.context, reading)
        return timeline.upcoming(reading, snapshot, plan, policy, most)


def test_what_is_next_is_told_though_every_slot_is_taken(office):
    office.policy("[caps]\nall = 2\n")
    office.add(*({"id": f"t{number}", "prompt": f"say {number}"} for number in range(5)))
    office.lease(2)
    found = next_up(office)
    assert [each["task"] for each in found] == ["t2", "t3", "t4"]
    assert [each["title"] for each in found] == ["say 2", "say 3", "say 4"]
    assert not any(each["now"] for each in found)


def test_what_may_start_now_comes_first_and_says_so(office):
    office.policy("[caps]\nall = 1\n")
    office.add({"id": "a"}, {"id": "b"})
    assert [(each["task"], each["now"]) for each in next_up(office)] == [("a", True), ("b", False)]


def test_what_is_held_by_another_rule_is_not_next(office):
    office.policy('[caps]\nall = 1\n"kind:review" = 1\n')
    office.add({"id": "a", "kind": "review"}, {"id": "b", "kind": "review"}, {"id": "c"})
    assert office.lease(1)[0]["task"] == "c"
    assert [each["task"] for each in next_up(office)] == ["a"]  # b waits for it
    queue.pause(office.context, "all")
    assert next_up(office) == []


def test_no_more_are_told_than_are_asked_for_however_long_the_queue(office):
    office.policy("[caps]\nall = 1\n")
    office.add(*({"id": f"t{number}"} for number in range(300)))
    office.lease(1)
    assert [each["task"] for each in next_up(office, 40)] == [f"t{n}" for n in range(1, 41)]


def test_the_plan_stays_as_it_is(office):
    office.policy("[caps]\nall = 1\n")
    office.add({"id": "a"}, {"id": "b"})
    next_up(office)
    assert [each["task"] for each in office.lease()] == ["a"]


def test_attempts_stand_in_rows_that_do_not_overlap(office):
    office.policy("[caps]\nall = 2\n")
    office.add({"id": "a"}, {"id": "b"}, {"id": "c"})
    first, second = office.lease(2)
    office.wait(MINUTE)
    office.finish(first["lease"], 10)
    office.wait(SECOND)
    office.lease(1)
    office.wait(MINUTE)
    office.fail(second["lease"])
    found, left_out = bars(office, NOON - HOUR)
    assert [(bar["task"], bar["row"]) for bar in found] == [("a", 0), ("b", 1), ("c", 0)]
    assert [bar["outcome"] for bar in found] == ["succeeded", "failed", None]
    assert not left_out
    assert found[0]["from"] == show_instant(NOON)
    assert found[0]["to"] == show_instant(NOON + MINUTE)


def test_what_ended_before_the_window_is_left_out_of_it(office):
    office.add({"id": "a"})
    office.finish(office.lease(1)[0]["lease"])
    office.wait(2 * HOUR)
    assert bars(office, NOON + HOUR) == ([], False)
    assert len(bars(office, NOON - HOUR)[0]) == 1


def test_no_more_attempts_are_read_than_the_bound(office):
    office.policy("[caps]\nall = 9\n")
    office.add(*({"id": f"t{number}"} for number in range(9)))
    for lease in office.lease(9):
        office.wait(SECOND)
        office.finish(lease["lease"])
    with office.context.store.read() as reading:
        found, left_out = timeline.bars_since(reading, NOON, office.context.now(), most=4)
    assert len(found) == 4
    assert left_out


@pytest.mark.parametrize(("back", "step"), [(MINUTE, 5), (10 * MINUTE, 20), (6 * HOUR, 900)])
def test_buckets_have_lengths_that_people_count_in(office, back, step):
    found = buckets(office, NOON - back)
    assert found["step_seconds"] == step
    assert len(found["buckets"]) <= timeline.POINTS + 2


@pytest.mark.parametrize("back", [2 * MINUTE, 2 * HOUR])
def test_completions_and_waits_are_told_where_they_happened(office, back):
    office.policy("[caps]\nall = 1\n")
    office.add({"id": "a"}, {"id": "b"})
    office.wait(30 * SECOND)
    office.finish(office.lease(1)[0]["lease"], 70)
    office.wait(30 * SECOND)
    office.lease(1)
    found = buckets(office, NOON - back)
    assert sum(row["completions"] for row in found["buckets"]) == 1
    assert sum(row["starts"] for row in found["buckets"]) == 2
    assert sum(row["tokens"] for row in found["buckets"]) == 70
    waits = [row["wait_p95"] for row in found["buckets"] if row["wait_p95"] is not None]
    assert max(waits) == 60.0
    assert found["whole"]


def test_shares_stand_beside_what_weights_ask_for(office):
    projects.add_project(office.context, "web", {"weight": 3})
    projects.add_project(office.context, "api")
    office.add({"id": "a", "project": "web"}, {"id": "b", "project": "api"})
    for lease, tokens in zip(office.lease(2), (900, 100), strict=True):
        office.finish(lease["lease"], tokens)
    with office.context.store.read() as reading:
        rows = share_rows(reading, office.context.policy(), office.context.now())
    told = {row["project"]: (row["weight"], row["tokens"], row["share"]) for row in rows}
    assert set(told) == {"web", "api"}
    assert sum(share for _, _, share in told.values()) == 1.0
    assert sum(row["target"] for row in rows) == 1.0
