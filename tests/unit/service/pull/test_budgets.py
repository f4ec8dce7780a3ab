"""Budgets watch whatever is booked: reported, ended, or late, by a holder or by the daemon."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from fairlane.model.errors import Refused
from fairlane.model.event import Happening
from fairlane.model.instant import MINUTE
from fairlane.service import holding, leases, projects
from fairlane.service.ending import Report
from fairlane.service.holding import Ending, Progress
from fairlane.service.operations import calls

STOP = '[[budget]]\nscope = "all"\ntokens = 1000\nwindow = "total"\non_exceeded = "stop"\n'


def told(office, *kinds):
    """What the log says of budgets, oldest first."""
    with office.desk.store.read() as reading:
        events = reading.events(limit=1000)
    return [event.kind for event in events if event.kind.startswith("budget_")]


def two(office, rules=STOP):
    """Two leases under a budget."""
    office.policy(rules)
    office.add({"id": "a", "estimate_tokens": 0}, {"id": "b", "estimate_tokens": 0})
    return {each["task"]: each["lease"] for each in office.lease()}


def used(tokens):
    return Report(tokens=(tokens, 0, 0, 0))


REPORTS = {
    "report": lambda desk, lease, tokens: leases.report(desk, lease, used(tokens)),
    "complete": lambda desk, lease, tokens: leases.complete(desk, [lease], used(tokens)),
    "release": lambda desk, lease, tokens: leases.release(desk, lease, "failed", used(tokens)),
    "operation": lambda desk, lease, tokens: calls.report(desk, lease, tokens={"input": tokens}),
    "progress": lambda desk, lease, tokens: holding.progress(
        desk, desk.policy(), {lease: Progress(tokens=(tokens, 0, 0, 0))}
    ),
    "finish": lambda desk, lease, tokens: holding.finish(
        desk, desk.policy(), {lease: Ending(Happening.SUCCEEDED, used(tokens))}
    ),
}
each_way = pytest.mark.parametrize("way", REPORTS)


@each_way
def test_whoever_reports_a_budget_warns_and_stops_the_rest(office, way):
    held = two(office)
    tell = partial(REPORTS[way], office.desk)
    leases.report(office.desk, held["b"], used(100))
    assert told(office) == []
    tell(held["a"], 700)
    assert told(office) == ["budget_warning"]
    assert leases.heartbeat(office.desk, held["b"])["stop"] is False
    leases.report(office.desk, held["b"], used(400))
    assert told(office) == ["budget_warning", "budget_exceeded"]
    assert leases.heartbeat(office.desk, held["b"])["stop"] is True


@each_way
def test_an_end_that_uses_the_budget_up_stays_an_end(office, way):
    held = two(office)
    REPORTS[way](office.desk, held["a"], 5_000)
    ended = {"report": "leased", "operation": "leased", "progress": "leased", "release": "queued"}
    after = office.status_of("a")[0].replace("running", "leased")
    assert after == ended.get(way, "done")
    assert told(office) == ["budget_exceeded"]
    assert leases.heartbeat(office.desk, held["b"])["stop"] is True


def test_the_answer_to_the_report_itself_says_stop(office):
    held = two(office)
    assert leases.report(office.desk, held["a"], used(5_000))["stop"] is True
    assert leases.release(office.desk, held["a"])["status"] == "queued"
    with office.desk.store.read() as reading:
        assert reading.attempts("a")[0].outcome == "released"


def test_several_results_at_once_are_watched_together(office):
    held = two(office)
    leases.complete(office.desk, list(held.values()), used(600))
    assert office.status_of("a", "b") == ["done", "done"]
    assert told(office) == ["budget_exceeded"]


@pytest.mark.parametrize("late", ["report", "release", "complete", "finish"])
def test_late_usage_is_watched_too(office, late):
    held = two(office)
    office.wait(4 * MINUTE)
    leases.heartbeat(office.desk, held["b"])
    office.wait(2 * MINUTE)
    assert leases.reclaim(office.desk)["reclaimed"] == ["a"]
    with suppress(Refused):  # the holder is told that its lease is lost; the usage counts
        REPORTS[late](office.desk, held["a"], 5_000)
    assert told(office) == ["budget_exceeded"]
    assert leases.heartbeat(office.desk, held["b"])["stop"] is True


def test_the_budgets_of_a_project_watch_its_own_work_alone(office):
    budget = {"tokens": 1_000, "window": "total", "on_exceeded": "stop"}
    projects.add_project(office.desk, "web", {"budgets": [budget]})
    office.add({"id": "a", "project": "web", "estimate_tokens": 0}, {"id": "b"})
    held = {each["task"]: each["lease"] for each in office.lease()}
    leases.report(office.desk, held["b"], used(5_000))
    assert told(office) == []
    leases.report(office.desk, held["a"], used(5_000))
    assert told(office) == ["budget_exceeded"]
    stops = {name: leases.heartbeat(office.desk, lease)["stop"] for name, lease in held.items()}
    assert stops == {"a": True, "b": False}


def test_a_budget_that_lets_finish_stops_nobody(office):
    held = two(office, STOP.replace('"stop"', '"finish"'))
    leases.report(office.desk, held["a"], used(5_000))
    assert told(office) == ["budget_exceeded"]
    assert leases.heartbeat(office.desk, held["b"])["stop"] is False
