"""Gate `workspace`: one attempt per workspace."""

from __future__ import annotations

from fairlane.model.project import Project
from tests.unit.planner.scene import code, hold, picks, planned, queued, running

TWO = Project("web", workspaces=("w1", "w2"))


def web(id: str, **fields):
    return queued(id, project="web", **fields)


def test_a_project_without_workspaces_needs_none():
    assert [pick.workspace for pick in planned([web("a")]).picks] == [None]


def test_as_many_start_as_workspaces_are_free():
    tasks = [running("x", project="web", workspace="w1"), web("a"), web("b")]
    plan = planned(tasks, projects=[TWO])
    assert [(pick.task, pick.workspace) for pick in plan.picks] == [("a", "w2")]
    found = plan.holds[0].hold
    assert (found.gate, found.code, found.holders) == ("workspace", "workspace", ("x", "a"))
    assert found.reason == "no workspace of web is free: w1 by x, w2 by a"


def test_none_declared_is_none_free():
    assert code("a", [web("a")], projects=[Project("web", workspaces=())]) == (
        "workspace", "workspace",
    )  # fmt: skip


def test_two_that_prefer_the_same_do_not_share_it():
    tasks = [web("a", workspace="w1"), web("b", workspace="w1"), web("c")]
    assert picks(tasks, projects=[TWO]) == ["a", "c"]
    assert hold("b", tasks, projects=[TWO]).reason == "workspace w1 is taken by a"


def test_the_one_that_fewest_ready_tasks_prefer_is_taken():
    tasks = [web("a"), web("b", workspace="w1", priority=500)]
    plan = planned(tasks, projects=[TWO])
    assert [(pick.task, pick.workspace) for pick in plan.picks] == [("a", "w2"), ("b", "w1")]


def test_equally_preferred_the_name_decides():
    plan = planned([web("a")], projects=[Project("web", workspaces=("w2", "w1"))])
    assert plan.picks[0].workspace == "w1"


def test_the_same_name_in_another_project_is_another_workspace():
    tasks = [running("x", project="api", workspace="w1"), web("a", workspace="w1")]
    assert picks(tasks, projects=[TWO]) == ["a"]
