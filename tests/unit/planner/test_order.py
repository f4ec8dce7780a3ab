"""Order: the policy's keys, most significant first; age and then `seq` end every order."""

from __future__ import annotations

import pytest

from fairlane.model.project import Project
from tests.unit.planner.scene import picks, policy, queued


def ordered(order: str, tasks, **world):
    return picks(tasks, policy(order=order.split(), caps__all=9, share__guarantee=0), **world)


def test_ties_are_broken_by_seq_and_never_by_the_text_of_an_id():
    tasks = [queued("t2", seq=2), queued("t10", seq=10), queued("t1", seq=11)]
    assert ordered("priority", tasks) == ["t2", "t10", "t1"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("priority", ["urgent", "old", "deep"]),
        ("age", ["old", "deep", "urgent"]),
        ("score", ["deep", "old", "urgent"]),
    ],
)
def test_each_key(order, expected):
    tasks = [
        queued("old", age=90),
        queued("deep", age=60, depth=5),
        queued("urgent", age=1, priority=1),
    ]
    assert ordered(order, tasks) == expected


def test_equal_ages_leave_it_to_the_next_key():
    tasks = [queued("late", priority=200), queued("soon", priority=1), queued("old", 1)]
    assert ordered("age priority", tasks) == ["old", "soon", "late"]


def test_the_overdue_go_first_and_the_oldest_of_them_before():
    day = 24 * 60
    tasks = [
        queued("new", priority=1),
        queued("exactly", age=day, priority=2),
        queued("late", age=day + 1, priority=300),
        queued("later", age=day + 9, priority=400),
    ]
    assert ordered("overdue priority", tasks) == ["later", "late", "new", "exactly"]


def test_keys_of_projects_may_stand_between_others():
    day = 24 * 60
    tasks = [
        queued("a-late", age=2 * day, project="a"),
        queued("a-soon", project="a", priority=1),
        queued("b-late", age=3 * day, project="b"),
        queued("b-slow", project="b", priority=9),
        queued("b-soon", project="b", priority=5),
    ]
    projects = [Project("a", clock=0), Project("b", clock=10**12)]
    expected = ["b-late", "a-late", "a-soon", "b-soon", "b-slow"]
    assert ordered("overdue share priority", tasks, projects=projects) == expected
    expected = ["a-soon", "b-soon", "b-slow", "a-late", "b-late"]
    assert ordered("priority share overdue", tasks, projects=projects) == expected


def test_inside_a_lane_it_is_first_in_first_out():
    tasks = [queued("young", age=1), queued("old", age=9), queued("twin", age=9)]
    assert ordered("score share priority", tasks) == ["old", "twin", "young"]


def test_created_and_ready_can_disagree():
    made = queued("made", age=9)
    back = queued("back", age=1, created_at=0)
    rules = policy("fail-closed", caps__all=9)
    assert picks([made, back], rules) == ["back", "made"]
    assert picks([made, back], policy(order=["age"])) == ["made", "back"]
