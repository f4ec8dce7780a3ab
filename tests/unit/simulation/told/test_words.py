"""What people read of a simulation: lengths, tables, what differs."""

from __future__ import annotations

import pytest

from fairlane.simulation import report, words
from tests.unit.simulation.told.runs import attempt, minute, run, task, two_projects


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.25, "0.2 s"),
        (34, "34 s"),
        (89, "89 s"),
        (90, "1.5 min"),
        (600, "10 min"),
        (5399, "90 min"),
        (7560, "2.1 h"),
        (35 * 3600, "35 h"),
        (36 * 3600, "1.5 d"),
        (3000 * 86400, "3000 d"),
    ],
)
def test_a_length_has_one_unit_and_two_digits(seconds, shown):
    assert words.length(seconds) == shown


def test_shares_and_money_are_rounded_for_people():
    assert (words.percent(None), words.percent(0.734), words.percent(0)) == ("–", "73 %", "0 %")
    assert (words.dollars(4.2), words.dollars(99.99), words.dollars(1204.4)) == (
        "$4.20", "$99.99", "$1,204",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [(0, "0"), (850, "850"), (1500, "1.5k"), (11_499, "11k"), (999_499, "999k"),
     (999_500, "1.0M"), (51_234_567, "51.2M")],
)  # fmt: skip
def test_tokens_are_counted_in_thousands_and_millions(tokens, shown):
    assert words.token_count(tokens) == shown


def test_the_table_has_a_row_a_policy():
    rows = [report.policy_row(two_projects())]
    assert words.table(rows) == (
        ["policy", "done", "wait p50", "p90", "longest", "busy", "cost", "held by"],
        [["balanced", "3", "60 s", "15 min", "15 min", "42 %", "$1.25", "cap"]],
    )


def test_tokens_take_the_place_of_a_cost_that_nobody_knows():
    free = run((task("a"),), (attempt("a", usd=0, tokens=2_000_000),))
    assert words.table([report.policy_row(free)])[1][0][-2:] == ["2.0M", ""]


def test_projects_have_rows_for_one_policy_and_columns_for_several():
    document = report.answer(
        "x", [two_projects(), two_projects(policy="other", tasks=(task("a"),))]
    )
    assert words.by_project(document) == (
        ["policy", "api", "web", ""],
        [["balanced", "15 min", "11 min", ""], ["other", "–", "60 s", ""]],
    )
    assert words.projects(document["policies"][0]["by_project"])[1] == [
        ["api", "1", "1", "0 s", "15 min", "500", "25 %", "25 %", "70"],
        ["web", "3", "2", "60 s", "11 min", "1.5k", "75 %", "75 %", "40"],
    ]


def test_too_many_projects_have_no_columns():
    tasks = tuple(task(f"t{number}", f"p{number}") for number in range(words.PROJECTS_MAX + 1))
    assert words.by_project(report.answer("x", [run(tasks)])) == ([], [])


def test_what_held_tasks_is_named_with_the_longest_first():
    assert words.held(report.policy_row(two_projects())) == "cap 30 min, needs 5 s"
    assert words.held(report.policy_row(run())) == ""


@pytest.mark.parametrize(
    ("held", "code"),
    [({"cap": 5, "needs": 9}, "cap"), ({"cap": 5, "paused": 9}, "paused"), ({"backoff": 9}, "")],
)
def test_held_by_is_what_held_ready_tasks_for_longest(held, code):
    assert words.table([report.policy_row(run(held=held))])[1][0][-1] == code


def test_one_policy_has_sentences_of_its_own():
    assert words.alone(report.policy_row(two_projects(refused=1200))) == [
        "Held, over all tasks: cap 30 min, needs 5 s.",
        "Longest wait: d, 15 min. 1 never started.",
        "Not done at the end: 1 queued, 1,200 refused by the full queue.",
        "Furthest behind its share: 70 tokens/weight (bound 900).",
    ]
    assert words.alone(report.policy_row(run())) == []


def test_acts_that_were_refused_are_named_and_many_counted():
    acts = tuple((minute(number), "retry", f"t{number} is done") for number in range(5))
    assert words.alone(report.policy_row(run(undone=acts))) == [
        "Refused: retry at 2027-01-14T00:00:00Z: t0 is done.",
        "Refused: retry at 2027-01-14T00:01:00Z: t1 is done.",
        "Refused: retry at 2027-01-14T00:02:00Z: t2 is done.",
        "Refused: 2 more acts.",
    ]


def test_only_what_differs_is_told():
    quick = two_projects(policy="quick", tasks=two_projects().tasks[:3], refused=7)
    slow = two_projects(
        policy="slow", attempts=(attempt("a", ended_at=minute(20), usd=90_000_000),)
    )
    lines = words.differences(report.answer("x", [two_projects(), quick, slow]))
    assert lines == [
        "Wait p90: 11 min (quick) to 15 min (balanced, slow)",
        "Longest wait: 11 min (quick) to 15 min (balanced, slow)",
        "Last attempt ended after: 16 min (balanced, quick) to 20 min (slow)",
        "Tasks that the full queue refused: 0 (balanced, slow) to 7 (quick)",
        "Cost: $1.25 (balanced, quick) to $90.00 (slow)",
    ]
    assert words.differences(report.answer("x", [two_projects(), two_projects()])) == []


def test_one_line_says_what_was_simulated_and_one_what_came_of_it():
    document = report.answer("x", [two_projects(refused=5)])
    assert words.head(document) == "9 tasks in 20 min, seed 1"
    single = report.answer("x", [run((task("a"),))])
    assert words.head(single).startswith("1 task in ")
    summary = "3 done; wait 60 s, p90 15 min; slots 42 % busy"
    assert words.summary(document["policies"][0]) == summary
