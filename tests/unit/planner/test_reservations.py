"""What the oldest overdue lane of a project waits for is kept for it."""

from __future__ import annotations

from fairlane.model.project import Project
from tests.unit.planner.scene import code, hold, picks, planned, policy, queued, running

DAY = 24 * 60
BOTH = queued("both", age=2 * DAY, locks=("x", "y"))


def test_streams_that_need_one_lock_each_do_not_starve_who_needs_both():
    waiting = [BOTH, queued("x2", locks=("x",)), queued("y2", locks=("y",))]
    tasks = [running("x1", locks=("x",)), *waiting]
    assert picks(tasks) == []
    assert code("both", tasks) == ("locks", "lock")
    found = hold("y2", tasks)
    assert (found.gate, found.code, found.holders) == ("locks", "reserved", ("both",))
    assert found.reason == "lock y is reserved for both, which is overdue"
    assert picks(waiting) == ["both"]


def test_nothing_is_reserved_before_it_is_overdue_or_where_nothing_can_be():
    soon = queued("both", age=DAY, locks=("x", "y"))
    tasks = [running("x1", locks=("x",)), soon, queued("y2", locks=("y",))]
    assert picks(tasks) == ["y2"]
    late = [running("x1", locks=("x",)), BOTH, queued("y2", locks=("y",))]
    assert picks(late, policy(overdue__after="none")) == ["y2"]


def test_who_is_held_by_another_gate_too_reserves_nothing():
    late = queued("both", age=2 * DAY, locks=("x", "y"), kind="plan")
    tasks = [running("x1", locks=("x",)), late, queued("y2", locks=("y",))]
    assert picks(tasks, policy(**{"caps__kind:plan": 0})) == ["y2"]


def test_only_the_oldest_of_a_project_reserves():
    younger = queued("younger", age=2 * DAY - 1, locks=("x", "z"))
    tasks = [running("x1", locks=("x",)), BOTH, younger, queued("z2", locks=("z",))]
    assert picks(tasks) == ["z2"]


def test_of_two_projects_the_older_gets_what_both_want_and_starts():
    other = queued("other", age=3 * DAY, project="web", locks=("y", "z"))
    tasks = [running("x1", locks=("x",)), running("z1", locks=("z",)), BOTH, other]
    more = [*tasks, queued("y2", locks=("y",), project="api")]
    assert hold("y2", more).holders == ("other",)
    plan = planned([task for task in more if task.id != "z1"])
    assert [pick.task for pick in plan.picks] == ["other"]  # no deadlock


def test_what_is_reserved_is_kept_from_lanes_of_the_same_shape():
    rules = policy(order=["priority"])
    like = queued("like", locks=("x", "y"), priority=1)
    tasks = [running("y1", locks=("y",)), BOTH, like]
    assert code("like", tasks, rules) == ("locks", "reserved")
    assert code("both", tasks, rules) == ("locks", "lock")


def test_a_workspace_is_reserved_too():
    web = Project("web", workspaces=("w1", "w2"))
    late = queued("late", age=2 * DAY, project="web", workspace="w1", locks=("x",))
    tasks = [running("x1", locks=("x",)), late, queued("a", project="web", workspace="w1")]
    found = hold("a", tasks, projects=[web])
    assert (found.gate, found.code, found.holders) == ("workspace", "reserved", ("late",))


def test_a_free_workspace_is_reserved_for_who_prefers_none():
    web = Project("web", workspaces=("w1", "w2"))
    late = queued("late", age=2 * DAY, project="web", locks=("x",))
    young = [queued(f"a{n}", project="web") for n in (1, 2)]
    plan = planned([running("x1", locks=("x",)), late, *young], projects=[web])
    assert [(pick.task, pick.workspace) for pick in plan.picks] == [("a1", "w2")]
    found = plan.holds[1].hold
    assert (found.gate, found.code, found.holders) == ("workspace", "reserved", ("late",))
