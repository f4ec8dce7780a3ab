"""Readiness: what a queued task of its own waits for, as policy and time have it."""

from __future__ import annotations

import pytest

from fairlane.model.errors import Invalid
from fairlane.model.instant import MINUTE
from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Status, Task
from tests.unit.planner.scene import NOW, asked, code, picks, planned, policy, queued, running


def other(status: Status) -> Task:
    return running("o") if status.in_flight else Task("o", created_at=NOW, status=status)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"artifacts_missing": ("plan.md",)}, "artifact"),
        ({"backoff_until": NOW + 1}, "backoff"),
        ({"not_before": NOW + 1}, "not_before"),
        ({"source_hold": "blocked by 7"}, "source"),
        ({"paused": True}, "paused"),
    ],
)
def test_each_code(fields, expected):
    assert code("t", [queued("t", **fields)]) == ("readiness", expected)


@pytest.mark.parametrize("fields", [{"backoff_until": NOW}, {"not_before": NOW}])
def test_a_timer_has_passed_at_its_instant(fields):
    assert picks([queued("t", **fields)]) == ["t"]


@pytest.mark.parametrize(
    ("status", "upstream", "expected"),
    [
        (Status.DONE, "hold", None),
        (Status.RUNNING, "hold", "needs"),
        (Status.LEASED, "run", "needs"),
        (Status.PARKED, "hold", "upstream"),
        (Status.CANCELED, "hold", "upstream"),
        (Status.CANCELED, "cancel", "upstream"),
        (Status.PARKED, "run", None),
        (Status.CANCELED, "run", None),
    ],
)
@pytest.mark.parametrize("by", ["needs", "parent"])
def test_what_is_needed_must_be_done(status, upstream, expected, by):
    task = queued("t", **({"needs": ("o",)} if by == "needs" else {"parent": "o"}))
    rules = policy(readiness__upstream=upstream)
    if expected is None:
        assert "t" in picks([other(status), task], rules)
    else:
        found = by if expected == "needs" else expected
        assert code("t", [other(status), task], rules) == ("readiness", found)


@pytest.mark.parametrize("status", [Status.RUNNING, Status.PARKED, Status.CANCELED])
def test_children_may_run_beside_their_parent(status):
    tasks = [other(status), queued("t", parent="o")]
    assert picks(tasks, policy(readiness__parent="none")) == ["t"]


def test_the_first_code_counts_and_why_names_all():
    task = queued(
        "t", needs=("o",), artifacts_missing=("a",), backoff_until=NOW + 2, not_before=NOW + 1,
        source_hold="x", paused=True,
    )  # fmt: skip
    tasks = [running("o"), task]
    assert code("t", tasks) == ("readiness", "needs")
    codes = [hold.code for hold in asked("t", tasks).holds]
    assert codes == ["needs", "artifact", "backoff", "not_before", "source", "paused"]


def test_waiting_tasks_are_counted_by_code_with_the_first_five_by_seq():
    tasks = [queued(f"t{n}", not_before=NOW + (9 - n) * MINUTE) for n in range(7)]
    held = planned(tasks).holds[0]
    assert (held.count, held.tasks) == (7, ("t0", "t1", "t2", "t3", "t4"))
    assert held.hold.until == NOW + 3 * MINUTE


def test_what_a_store_has_counted_is_added():
    counts = (WaitCount("not_before", 40, ("u1", "u2"), NOW + 5), WaitCount("needs", 2, ("v",)))
    made = planned([queued("t", not_before=NOW + 9)], wait_counts=counts)
    rows = [(held.hold.code, held.count, held.tasks, held.hold.until) for held in made.holds]
    assert rows == [("needs", 2, ("v",), None), ("not_before", 41, ("t", "u1", "u2"), NOW + 5)]


def test_a_need_that_is_not_known_is_refused():
    with pytest.raises(Invalid, match="needs nobody, which is not known"):
        planned([queued("t", needs=("nobody",))])


def test_depth_is_the_number_of_ancestors():
    done = Status.DONE
    tasks = [Task("a", status=done), Task("b", parent="a", status=done), queued("c", parent="b")]
    assert planned(tasks).picks[0].lane.depth == 2
