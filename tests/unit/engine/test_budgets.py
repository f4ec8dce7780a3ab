"""Budgets watch whatever is booked: reported, ended, or late, by a holder or by the daemon."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from fairlane.engine import attempts
from fairlane.engine.attempts import Progress
from fairlane.engine.end_attempt import Ending, Report
from fairlane.model.errors import Refused
from fairlane.model.event import Happening
from fairlane.model.instant import MINUTE
from fairlane.model.project import CLOCK_SCALE, Project
from fairlane.service import projects, pull, tasks
from tests import holder

STOP = '[[budget]]\nscope = "all"\ntokens = 1000\nwindow = "total"\non_exceeded = "stop"\n'


def told(office, *kinds):
    """What the log says of budgets, oldest first."""
    with office.context.store.read() as reading:
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
    "report": lambda context, lease, tokens: holder.report(context, lease, used(tokens)),
    "complete": lambda context, lease, tokens: holder.complete(context, [lease], used(tokens)),
    "release": lambda context, lease, tokens: holder.release(
        context, lease, "failed", used(tokens)
    ),
    "operation": lambda context, lease, tokens: pull.report(
        context, lease, tokens={"input": tokens}
    ),
    "progress": lambda context, lease, tokens: attempts.progress(
        context, {lease: Progress(tokens=(tokens, 0, 0, 0))}
    ),
    "finish": lambda context, lease, tokens: attempts.finish(
        context, {lease: Ending(Happening.SUCCEEDED, used(tokens))}
    ),
}
each_way = pytest.mark.parametrize("way", REPORTS)


@each_way
def test_whoever_reports_a_budget_warns_and_stops_the_rest(office, way):
    held = two(office)
    tell = partial(REPORTS[way], office.context)
    holder.report(office.context, held["b"], used(100))
    assert told(office) == []
    tell(held["a"], 700)
    assert told(office) == ["budget_warning"]
    assert holder.heartbeat(office.context, held["b"])["stop"] is False
    holder.report(office.context, held["b"], used(400))
    assert told(office) == ["budget_warning", "budget_exceeded"]
    assert holder.heartbeat(office.context, held["b"])["stop"] is True


@each_way
def test_an_end_that_uses_the_budget_up_stays_an_end(office, way):
    held = two(office)
    REPORTS[way](office.context, held["a"], 5_000)
    ended = {"report": "leased", "operation": "leased", "progress": "leased", "release": "queued"}
    after = office.status_of("a")[0].replace("running", "leased")
    assert after == ended.get(way, "done")
    assert told(office) == ["budget_exceeded"]
    assert holder.heartbeat(office.context, held["b"])["stop"] is True


def test_the_answer_to_the_report_itself_says_stop(office):
    held = two(office)
    assert holder.report(office.context, held["a"], used(5_000))["stop"] is True
    assert holder.release(office.context, held["a"])["status"] == "queued"
    with office.context.store.read() as reading:
        assert reading.attempts("a")[0].outcome == "released"


def test_several_results_at_once_are_watched_together(office):
    held = two(office)
    holder.complete(office.context, list(held.values()), used(600))
    assert office.status_of("a", "b") == ["done", "done"]
    assert told(office) == ["budget_exceeded"]


@pytest.mark.parametrize("late", ["report", "release", "complete", "finish"])
def test_late_usage_is_watched_too(office, late):
    held = two(office)
    office.wait(4 * MINUTE)
    holder.heartbeat(office.context, held["b"])
    office.wait(2 * MINUTE)
    assert holder.reclaim(office.context)["reclaimed"] == ["a"]
    with suppress(Refused):  # the holder is told that its lease is lost; the usage counts
        REPORTS[late](office.context, held["a"], 5_000)
    assert told(office) == ["budget_exceeded"]
    assert holder.heartbeat(office.context, held["b"])["stop"] is True


def test_the_budgets_of_a_project_watch_its_own_work_alone(office):
    budget = {"tokens": 1_000, "window": "total", "on_exceeded": "stop"}
    projects.add_project(office.context, "web", {"budgets": [budget]})
    office.add({"id": "a", "project": "web", "estimate_tokens": 0}, {"id": "b"})
    held = {each["task"]: each["lease"] for each in office.lease()}
    holder.report(office.context, held["b"], used(5_000))
    assert told(office) == []
    holder.report(office.context, held["a"], used(5_000))
    assert told(office) == ["budget_exceeded"]
    stops = {name: holder.heartbeat(office.context, lease)["stop"] for name, lease in held.items()}
    assert stops == {"a": True, "b": False}


def test_a_budget_that_lets_finish_stops_nobody(office):
    held = two(office, STOP.replace('"stop"', '"finish"'))
    holder.report(office.context, held["a"], used(5_000))
    assert told(office) == ["budget_exceeded"]
    assert holder.heartbeat(office.context, held["b"])["stop"] is False


def test_tokens_and_dollars_of_one_scope_are_watched_apart(office):
    rules = "".join(
        f'[[budget]]\nscope = "all"\nwindow = "24h"\n{limit}\n'
        for limit in ("tokens = 1000000", "usd = 1")
    )
    lease = two(office, rules)["a"]
    for number in range(1, 6):
        pull.report(office.context, lease, tokens=number, cost=2.0 + number / 100)
    assert told(office) == ["budget_exceeded"]


@pytest.mark.parametrize("owner", ["project", "policy"])
def test_two_budgets_of_one_scope_are_watched_apart(office, owner):
    """Both of the policy, or one of them the project's own: each warns once."""
    own = [{"tokens": 100_000, "window": "total"}] if owner == "project" else []
    projects.add_project(office.context, "web", {"budgets": own})
    rule = STOP.replace("all", "project:web").replace('"stop"', '"finish"')
    office.policy(rule + (rule.replace("1000", "100000") if owner == "policy" else ""))
    office.add({"id": "a", "project": "web", "estimate_tokens": 0})
    (lease,) = office.lease()
    for tokens in (5_000, 6_000, 7_000):
        holder.report(office.context, lease["lease"], used(tokens))
    assert told(office) == ["budget_exceeded"]


def test_late_usage_counts_for_the_project_of_its_attempt(office):
    """Though its task has gone to another one since."""
    projects.add_project(office.context, "web")
    office.add({"id": "a"})
    (lease,) = office.lease()
    office.wait(6 * MINUTE)
    holder.reclaim(office.context)
    tasks.edit(office.context, ["a"], {"project": "web"})
    with suppress(Refused):
        holder.report(office.context, lease["lease"], used(700))
    with office.context.store.read() as reading:
        sums = reading.usage_sums("project:", 0)
        clocks = {name: row.clock for name, row in reading.table(Project).items()}
    assert {name: row.tokens[0] for name, row in sums.items()} == {"project:default": 700}
    assert clocks == {"default": 700 * CLOCK_SCALE, "web": 0}
