"""A clock that jumps: leases, ages and events stay right, nothing is negative or started twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairlane.app import open_desk
from fairlane.clock import FixedClock
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, show_instant
from fairlane.service import decisions, leases, rounds, tasks, whys
from fairlane.service.desk import Desk
from fairlane.service.ending import Report
from fairlane.service.reports.listing import list_tasks, show
from fairlane.service.reports.stats import stats
from fairlane.service.reports.status import status
from fairlane.service.reports.summary import summary

NOON = 20_000 * DAY + 12 * HOUR
POLICY = """
caps."all" = 2
lease.ttl = "5m"
retry.base = "30s"
retry.jitter = 0
overdue.after = "10m"
[[budget]]
scope = "all"
tokens = 1000000
window = "5h"
"""


@pytest.fixture
def desk(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    desk = open_desk(tmp_path, clock=FixedClock(NOON))
    yield desk
    assert desk.store.check() == []
    for planner in ("lanes", "reference"):
        assert decisions.replay(desk, planner=planner)["different"] == []
    desk.store.close()


def set_clock(desk: Desk, at: int) -> None:
    assert isinstance(desk.clock, FixedClock)
    desk.clock.at = at


def leased(desk: Desk) -> dict[str, str]:
    return {each["task"]: each["lease"] for each in leases.lease(desk)["leases"]}


def negatives(value: Any, path: str = "") -> Iterator[str]:
    """Everything below 0 in a document; only what is taken off a score may be."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("retries", "lag", "deficit"):
                yield from negatives(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from negatives(inner, f"{path}[{at}]")
    elif isinstance(value, int | float) and value < 0:
        yield f"{path} = {value}"


def told(desk: Desk, *names: str) -> None:
    """Every document that shows ages, times or sums shows none below 0."""
    documents = [status(desk), rounds.plan(desk), stats(desk), summary(desk), list_tasks(desk)]
    documents += [show(desk, name) for name in names] + [whys.why(desk, name) for name in names]
    assert [each for document in documents for each in negatives(document)] == []


def test_an_hour_back_loses_nothing_and_starts_nothing_twice(desk):
    tasks.add(desk, [{"id": name} for name in "abcd"])
    held = leased(desk)
    assert sorted(held) == ["a", "b"]
    set_clock(desk, NOON + MINUTE)
    leases.heartbeat(desk, held["a"])
    set_clock(desk, NOON - HOUR)
    assert leased(desk) == {}, "the cap is full, whatever the time"
    assert leases.reclaim(desk)["reclaimed"] == []
    told(desk, "a", "c")
    renewed = leases.heartbeat(desk, held["a"])
    assert renewed["expires_at"] == show_instant(NOON - HOUR + 5 * MINUTE)
    done = leases.complete(desk, [held["a"]], Report(tokens=(100, 10, 0, 0), usd=5))
    assert done["status"] == "done"
    assert leases.release(desk, held["b"], "failed")["status"] == "queued"
    told(desk, "a", "b", "c")
    assert sorted(leased(desk)) == ["c", "d"]


def test_events_keep_their_order_though_their_times_do_not(desk):
    tasks.add(desk, [{"id": "a"}])
    held = leased(desk)
    set_clock(desk, NOON - HOUR)
    leases.complete(desk, list(held.values()))
    tasks.add(desk, [{"id": "b"}])
    with desk.store.read() as reading:
        events = reading.events()
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [event.kind for event in events] == ["added", "leased", "succeeded", "added"]
    assert events[2].at < events[1].at


def test_an_expired_lease_is_lost_once_when_the_clock_comes_forward_again(desk):
    tasks.add(desk, [{"id": "a", "max_attempts": 5}])
    first = leased(desk)["a"]
    set_clock(desk, NOON - HOUR)
    assert leased(desk) == {}
    set_clock(desk, NOON + 6 * MINUTE)
    assert leases.reclaim(desk)["reclaimed"] == ["a"]
    set_clock(desk, NOON - HOUR)
    assert leases.reclaim(desk)["reclaimed"] == []
    assert leased(desk) == {}, "it waits after the loss"
    set_clock(desk, NOON + 7 * MINUTE)
    second = leased(desk)["a"]
    assert second != first
    with pytest.raises(Exception, match="expired and was reclaimed"):
        leases.complete(desk, [first])
    with desk.store.read() as reading:
        tries = reading.attempts("a")
    assert [(each.number, each.outcome) for each in tries] == [(1, "lost"), (2, None)]
    assert tries[0].fence < tries[1].fence


def test_work_added_before_the_jump_stays_older_than_what_comes_after_it(desk):
    tasks.add(desk, [{"id": "old"}])
    set_clock(desk, NOON - HOUR)
    tasks.add(desk, [{"id": "new"}])
    told(desk, "old", "new")
    plan = rounds.plan(desk)
    assert {pick["task"] for pick in plan["picks"]} == {"old", "new"}
    assert all(pick["score_parts"]["age"] == 0 for pick in plan["picks"])


def test_usage_that_was_booked_in_the_future_counts_in_its_budget(desk):
    tasks.add(desk, [{"id": name} for name in "ab"])
    held = leased(desk)
    leases.report(desk, held["a"], Report(tokens=(1_000_000, 0, 0, 0)))
    set_clock(desk, NOON - HOUR)
    leases.complete(desk, list(held.values()))
    tasks.add(desk, [{"id": "c"}])
    assert leased(desk) == {}, "the budget is spent"
    told(desk, "a", "c")


class Falling:
    """A clock that goes back an hour whenever it is asked."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> int:
        self.at -= HOUR
        return self.at


def test_waiting_for_work_ends_whatever_the_clock_does(desk):
    desk.clock = Falling()
    assert leases.lease(desk, wait=SECOND // 2)["leases"] == []
