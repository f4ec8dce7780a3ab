"""A snapshot from plain objects: lanes, what is in flight, what waits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND
from fairlane.model.project import Project
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Lease, Status, Task


def test_tasks_of_one_shape_are_one_lane_oldest_first():
    tasks = [
        Task("young", created_at=9, locks=("x", "y")),
        Task("old", created_at=5, ready_since=20, locks=("y", "x", "x")),
        Task("apart", created_at=5, priority=1),
    ]
    lanes = Snapshot.of(tasks).lanes
    assert [[entry.task for entry in lane.by_created] for lane in lanes] == [
        ["old", "young"],
        ["apart"],
    ]
    assert [entry.task for entry in lanes[0].in_order("ready")] == ["young", "old"]
    assert [entry.task for entry in lanes[0].in_order("created")] == ["old", "young"]
    assert lanes[0].count == 2


def test_seq_is_given_in_order_where_it_is_missing():
    snapshot = Snapshot.of([Task("b"), Task("a")])
    assert [(entry.task, entry.seq) for entry in snapshot.lanes[0].by_ready] == [("b", 1), ("a", 2)]


def test_what_is_in_flight_has_ended_or_waits_is_in_no_lane():
    tasks = [
        Task("r", status=Status.RUNNING, lease=Lease("l1", used=7), project="web"),
        Task("d", status=Status.DONE),
        Task("w", needs=("r",)),
        Task("free", needs=("d",)),
        Task("paused"),
    ]
    snapshot = Snapshot.of(tasks, projects=[Project("web", tokens=100)], paused=["task:paused"])
    assert [lane.by_ready[0].task for lane in snapshot.lanes] == ["free"]
    assert [each.task for each in snapshot.in_flight] == ["r"]
    assert [each.entry.task for each in snapshot.waiting] == ["w", "paused"]
    assert snapshot.ended == {"d": Status.DONE}
    assert snapshot.projects["web"].tokens == 107
    assert "default" in snapshot.projects


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([Task("a"), Task("a")], "task a appears twice"),
        ([Task("a", needs=("b",))], "task a needs b, which is not known"),
        ([Task("a", parent="b"), Task("b", parent="a")], "is its own ancestor"),
    ],
)
def test_what_cannot_be_is_refused(tasks, message):
    with pytest.raises(Invalid, match=message):
        Snapshot.of(tasks)


def test_datetimes_become_instants():
    moment = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    task = Task("a", created_at=moment, not_before=moment)  # type: ignore[arg-type]
    assert (task.created_at, task.not_before, task.entry.ready_since) == (SECOND, SECOND, SECOND)
    with pytest.raises(Invalid, match="time without a zone"):
        Task("a", created_at=datetime(1970, 1, 1))  # type: ignore[arg-type]


def test_age_begins_when_the_timers_have_passed():
    assert Task("a", created_at=1, not_before=5, backoff_until=9).entry.ready_since == 9
    assert Task("a", created_at=1, not_before=5, ready_since=3).entry.ready_since == 3
