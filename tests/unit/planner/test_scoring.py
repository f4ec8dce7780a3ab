"""The score: named terms that sum to it, all whole numbers."""

from __future__ import annotations

import pytest

from tests.unit.planner.scene import NOW, planned, policy, queued

DEPTH_FIRST = policy("depth-first")


def parts(rules=DEPTH_FIRST, **fields):
    found = planned([queued("t", **fields)], rules).picks[0].score
    return found.kind, found.age, found.depth, found.retries


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"age": 5, "depth": 3}, (100, 5, 30, 0)),
        ({"age": 30, "depth": 2, "kind": "phase"}, (80, 30, 20, 0)),
        ({"age": 1, "depth": 3, "failures": 4}, (100, 1, 30, -20)),
        ({"failures": 19}, (100, 0, 0, -30)),
        ({"kind": "research", "age": 51}, (50, 50, 0, 0)),
        ({"age": -7}, (100, 0, 0, 0)),
    ],
)
def test_terms(fields, expected):
    assert parts(**fields) == expected


def test_minutes_are_whole():
    late = NOW - 119_999_999
    assert parts(created_at=late, ready_since=late)[1] == 1


def test_a_kind_without_a_number_and_without_a_star_has_0():
    rules = policy(**{"score__kind.*": "none"})
    assert parts(rules, kind="odd")[0] == 0


def test_the_age_counts_from_what_the_policy_names():
    fields = {"created_at": NOW - 600_000_000, "ready_since": NOW - 60_000_000}
    assert parts(policy(score__age_from="ready"), **fields)[1] == 1
    assert parts(policy(score__age_from="created"), **fields)[1] == 10


def test_the_score_is_the_sum_and_is_shown_with_its_parts():
    pick = planned([queued("t", age=5, depth=3, failures=1)], DEPTH_FIRST).picks[0]
    shown = pick.document()
    assert shown["score_parts"] == {"kind": 100, "age": 5, "depth": 30, "retries": -5}
    assert shown["score"] == 130
