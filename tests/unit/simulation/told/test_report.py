"""A run becomes a document: every figure of a run that can be told by looking."""

from __future__ import annotations

import json

import pytest

from fairlane.model.instant import MINUTE
from fairlane.service.operations.schemas import DOCUMENTS
from fairlane.simulation import report
from tests.unit.simulation.told.runs import BEGIN, attempt, minute, run, task, two_projects


def test_the_answer_names_what_was_simulated():
    document = report.answer("team", [two_projects(), two_projects(policy="other", end=minute(60))])
    assert document["workload"] == "team"
    assert document["seed"] == 1
    assert document["days"] == round(60 / 1440, 4)
    assert document["begin"].startswith("2027-01-")
    assert [row["name"] for row in document["policies"]] == ["balanced", "other"]
    assert set(document) == set(DOCUMENTS["Simulate"]["properties"])
    row_schema = DOCUMENTS["Simulate"]["properties"]["policies"]["items"]["properties"]
    assert set(document["policies"][0]) == set(row_schema)


def test_waits_count_what_has_not_started_with_its_wait_so_far():
    row = report.policy_row(two_projects())
    # a waits 1 minute, b 11, c none, d 15 and still does
    assert row["waits"] == {"count": 4, "p50": 60.0, "p90": 900.0, "max": 900.0}
    assert row["late"] == {"task": "d", "seconds": 900.0, "never_started": 1}
    assert (row["tasks"], row["done"]) == (4, 3)


@pytest.mark.parametrize(
    ("changes", "wait"),
    [
        ({}, MINUTE),
        ({"ready_at": None, "started_at": None, "status": "queued"}, None),
        ({"started_at": None, "ended_at": minute(3), "status": "canceled"}, None),
        ({"started_at": None, "ended_at": None, "status": "queued"}, 20 * MINUTE),
        ({"ready_at": minute(2), "started_at": minute(1)}, 0),
    ],
)
def test_a_wait_is_from_ready_to_the_first_start(changes, wait):
    assert report.wait_of(task("a", **changes), minute(20)) == wait


def test_projects_and_kinds_have_their_own_figures():
    row = report.policy_row(two_projects())
    api, web = row["by_project"]
    assert (api["project"], api["weight"], api["tokens"], api["usd"]) == ("api", 1, 500, 0.25)
    assert (web["project"], web["weight"], web["tokens"], web["usd"]) == ("web", 3, 1500, 1.0)
    assert (api["share"], api["target"], api["lag"]) == (0.25, 0.25, 70)
    assert (web["share"], web["target"], web["lag"]) == (0.75, 0.75, 40)
    assert [(kind["kind"], kind["tasks"]) for kind in row["by_kind"]] == [
        ("code", 3),
        ("review", 1),
    ]
    assert (row["tokens"], row["usd"]) == (2000, 1.25)
    assert (row["lag"], row["bound"]) == (70, 900)


def test_a_policy_without_shares_has_no_lag_and_no_bound():
    row = report.policy_row(two_projects(lag={}))
    assert (row["lag"], row["bound"]) == (None, None)
    assert {each["lag"] for each in row["by_project"]} == {None}


def test_utilisation_is_busy_time_in_the_time_of_the_slots():
    attempts = (attempt("a"), attempt("b", leased_at=minute(15), ended_at=None, outcome=None))
    assert report.utilisation(run(attempts=attempts)) == 15 / 40
    slots = ((BEGIN, 1), (minute(10), 3), (minute(15), 0))
    assert report.utilisation(run(attempts=attempts, slots=slots)) == 15 / 25
    assert report.utilisation(run(attempts=attempts, slots=((BEGIN, 0),))) is None


def test_only_time_in_a_slot_and_in_the_simulation_is_busy():
    attempts = (attempt("a", leased_at=minute(-30)), attempt("b", gone_at=minute(3)))
    assert report.utilisation(run(attempts=attempts)) == (11 + 2) / 40


def test_the_time_it_took_ends_with_the_last_attempt():
    row = report.policy_row(two_projects())
    assert row["took"] == 16 * 60
    assert row["ends_per_day"] == 3 * 72
    assert report.policy_row(run())["took"] == 0


def test_attempts_statuses_and_holds_are_counted_in_order():
    attempts = (attempt("a", outcome="throttled"), attempt("a", ended_at=None, outcome=None))
    row = report.policy_row(two_projects(attempts=attempts))
    assert list(row["attempts"].items()) == [("running", 1), ("throttled", 1)]
    assert list(row["statuses"].items()) == [("done", 3), ("queued", 1)]
    assert list(row["held"].items()) == [("behind", 0.0), ("cap", 1800.0), ("needs", 5.0)]


def test_a_run_without_tasks_has_a_row_too():
    row = report.policy_row(run(end=BEGIN))
    assert row["waits"] == {"count": 0, "p50": None, "p90": None, "max": None}
    assert (row["by_project"], row["ends_per_day"], row["utilisation"]) == ([], 0.0, None)
    assert row["late"] == {"task": None, "seconds": None, "never_started": 0}


def test_the_same_run_gives_the_same_bytes():
    first, second = (json.dumps(report.answer("x", [two_projects()])) for _ in range(2))
    assert first == second
