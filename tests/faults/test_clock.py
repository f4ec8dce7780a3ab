"""A clock that jumps: leases, ages and events stay right, nothing is negative or started twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fairlane.app import open_context
from fairlane.clock import FixedClock, SystemClock
from fairlane.engine import decisions
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Report
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, show_instant
from fairlane.service import explain, planning, tasks
from fairlane.service.reports.listing import list_tasks, show
from fairlane.service.reports.stats import stats
from fairlane.service.reports.status import status
from fairlane.service.reports.summary import summary
from tests import holder

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
def context(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    context = open_context(tmp_path, clock=FixedClock(NOON))
    yield context
    assert context.store.check() == []
    for planner in ("lanes", "reference"):
        assert decisions.replay(context, planner=planner)["different"] == []
    context.store.close()


def set_clock(context: Context, at: int) -> None:
    assert isinstance(context.clock, FixedClock)
    context.clock.at = at


def leased(context: Context) -> dict[str, str]:
    return {each["task"]: each["lease"] for each in holder.lease(context)["leases"]}


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


def told(context: Context, *names: str) -> None:
    """Every document that shows ages, times or sums shows none below 0."""
    documents: list[Mapping[str, object]] = [
        status(context),
        planning.plan(context),
        stats(context),
        summary(context),
        list_tasks(context),
    ]
    documents += [show(context, name) for name in names]
    documents += [explain.why(context, name) for name in names]
    assert [each for document in documents for each in negatives(document)] == []


def test_an_hour_back_loses_nothing_and_starts_nothing_twice(context):
    tasks.add(context, [{"id": name} for name in "abcd"])
    held = leased(context)
    assert sorted(held) == ["a", "b"]
    set_clock(context, NOON + MINUTE)
    holder.heartbeat(context, held["a"])
    set_clock(context, NOON - HOUR)
    assert leased(context) == {}, "the cap is full, whatever the time"
    assert holder.reclaim(context)["reclaimed"] == []
    told(context, "a", "c")
    renewed = holder.heartbeat(context, held["a"])
    assert renewed["expires_at"] == show_instant(NOON - HOUR + 5 * MINUTE)
    done = holder.complete(context, [held["a"]], Report(tokens=(100, 10, 0, 0), usd=5))
    assert done["status"] == "done"
    assert holder.release(context, held["b"], "failed")["status"] == "queued"
    told(context, "a", "b", "c")
    assert sorted(leased(context)) == ["c", "d"]


def test_events_keep_their_order_though_their_times_do_not(context):
    tasks.add(context, [{"id": "a"}])
    held = leased(context)
    set_clock(context, NOON - HOUR)
    holder.complete(context, list(held.values()))
    tasks.add(context, [{"id": "b"}])
    with context.store.read() as reading:
        events = reading.events()
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [event.kind for event in events] == ["added", "leased", "succeeded", "added"]
    assert events[2].at < events[1].at


def test_an_expired_lease_is_lost_once_when_the_clock_comes_forward_again(context):
    tasks.add(context, [{"id": "a", "max_attempts": 5}])
    first = leased(context)["a"]
    set_clock(context, NOON - HOUR)
    assert leased(context) == {}
    set_clock(context, NOON + 6 * MINUTE)
    assert holder.reclaim(context)["reclaimed"] == ["a"]
    set_clock(context, NOON - HOUR)
    assert holder.reclaim(context)["reclaimed"] == []
    assert leased(context) == {}, "it waits after the loss"
    set_clock(context, NOON + 7 * MINUTE)
    second = leased(context)["a"]
    assert second != first
    with pytest.raises(Exception, match="expired and was reclaimed"):
        holder.complete(context, [first])
    with context.store.read() as reading:
        tries = reading.attempts("a")
    assert [(each.number, each.outcome) for each in tries] == [(1, "lost"), (2, None)]
    assert tries[0].fence < tries[1].fence


def test_work_added_before_the_jump_stays_older_than_what_comes_after_it(context):
    tasks.add(context, [{"id": "old"}])
    set_clock(context, NOON - HOUR)
    tasks.add(context, [{"id": "new"}])
    told(context, "old", "new")
    plan = planning.plan(context)
    assert {pick["task"] for pick in plan["picks"]} == {"old", "new"}
    assert all(pick["score_parts"]["age"] == 0 for pick in plan["picks"])


def test_usage_that_was_booked_in_the_future_counts_in_its_budget(context):
    tasks.add(context, [{"id": name} for name in "ab"])
    held = leased(context)
    holder.report(context, held["a"], Report(tokens=(1_000_000, 0, 0, 0)))
    set_clock(context, NOON - HOUR)
    holder.complete(context, list(held.values()))
    tasks.add(context, [{"id": "c"}])
    assert leased(context) == {}, "the budget is spent"
    told(context, "a", "c")


class Falling(SystemClock):
    """A clock that goes back an hour whenever it is asked."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> int:
        self.at -= HOUR
        return self.at


def test_waiting_for_work_ends_whatever_the_clock_does(context):
    context.clock = Falling()
    assert holder.lease(context, wait=SECOND // 2)["leases"] == []
