"""Whoever says that the work is done: its task is done when its checks have passed."""

from __future__ import annotations

import pytest

from fairlane.engine import attempts, checks
from fairlane.engine.look.workers import Asker
from fairlane.model.errors import Refused
from fairlane.model.instant import HOUR
from fairlane.service import projects, pull
from fairlane.service.reports.stats import stats
from fairlane.settings import host_name

HERE = Asker("box", None, "process", host_name())
OUTSIDE = Asker("box", None, "none", None)
PASSED = [{"name": "make test", "exit": 0, "seconds": 1.5}, {"name": "lint", "exit": 0}]


def lease(office, asker=OUTSIDE, **fields):
    own = [["make", "test"], {"name": "lint", "argv": ["ruff", "check"], "timeout": "90s"}]
    office.add({"id": "a", "checks": own} | fields)
    (document,) = attempts.lease(office.context, asker).documents
    return document


def row(office, name):
    with office.context.store.read() as reading:
        return reading.attempt(name)


def test_the_lease_document_has_the_checks(office):
    assert lease(office)["checks"] == [
        {"name": "make test", "argv": ["make", "test"], "timeout": None},
        {"name": "lint", "argv": ["ruff", "check"], "timeout": "1m30s"},
    ]


@pytest.mark.parametrize("sent", [[], PASSED[:1], [{"name": "other", "exit": 0}]])
def test_a_holder_that_sends_no_results_is_refused_and_nothing_changes(office, sent):
    name = lease(office)["lease"]
    before = row(office, name)
    with pytest.raises(Refused) as refused:
        pull.complete(office.context, name, checks=sent)
    assert refused.value.error_code == "checks_missing"
    assert "lint" in refused.value.message
    assert (row(office, name), office.status_of("a")) == (before, ["leased"])


def test_a_holder_that_sends_them_is_done(office):
    name = lease(office)["lease"]
    assert pull.complete(office.context, name, checks=PASSED)["status"] == "done"
    assert [(one["exit"], one["passed"]) for one in row(office, name).checks] == [(0, True)] * 2
    assert stats(office.context)["checks"] == [
        {"project": "default", "check": "lint", "runs": 1, "failed": 0},
        {"project": "default", "check": "make test", "runs": 1, "failed": 0},
    ]


def test_a_failing_result_is_a_failed_check(office):
    name = lease(office, agent="claude")["lease"]
    pull.report(office.context, name, session="s1")
    failed = {"name": "make test", "exit": 2, "output": "1 failed"}
    assert pull.complete(office.context, name, checks=[failed])["status"] == "queued"
    ended = row(office, name)
    assert (ended.outcome, ended.detail) == ("check_failed", "check make test: exit 2")
    (again,) = attempts.lease(office.context, OUTSIDE).documents
    assert again["session"] == "s1"
    assert "> 1 failed" in again["prompt"]
    assert stats(office.context)["checks"][0]["failed"] == 1


def test_a_late_success_needs_them_too(office):
    name = lease(office)["lease"]
    office.wait(HOUR)
    attempts.reclaim(office.context)
    with pytest.raises(Refused, match="make test, lint"):
        pull.complete(office.context, name)
    assert office.status_of("a") == ["queued"]
    assert pull.complete(office.context, name, checks=PASSED)["late"]
    assert office.status_of("a") == ["done"]


def test_what_an_attempt_of_the_daemon_says_is_a_claim(office):
    document = lease(office, HERE)
    answer = pull.complete(office.context, document["lease"], result={"answer": "fixed"})
    assert (answer["status"], answer["code"]) == ("running", "checks_pending")
    assert row(office, document["lease"]).result == {"answer": "fixed"}
    assert row(office, document["lease"]).ended_at is None


def test_without_checks_a_completion_is_the_end(office):
    document = lease(office, HERE, checks=[])
    assert pull.complete(office.context, document["lease"])["status"] == "done"


def test_checks_that_were_added_after_the_lease_hold_for_the_next_attempt(office):
    name = lease(office, checks=[])["lease"]
    projects.set_project(office.context, "default", {"checks": [["make", "test"]]})
    assert pull.complete(office.context, name)["status"] == "done"


def test_results_are_kept_and_told_as_they_come(office):
    document = lease(office, HERE)
    rows = [dict(one) for one in document["checked"]]
    rows[0] |= {"started_at": "2026-01-30T12:00:00Z", "starts": 1}
    checks.record(office.context, document["lease"], rows)
    rows[0] |= {"exit": 0, "passed": True, "seconds": 2.0}
    checks.record(office.context, document["lease"], rows)
    with office.context.store.read() as reading:
        kinds = [event.kind for event in reading.events(task="a")]
    assert kinds[-3:] == ["started", "checks_started", "check_passed"]
    assert checks.outstanding(row(office, document["lease"])) == ["lint"]
