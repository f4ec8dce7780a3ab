"""Gate `paused`: nothing starts in a scope that is paused."""

from __future__ import annotations

import pytest

from fairlane.model.project import Group, Project
from tests.unit.planner.scene import code, hold, pause, picks, planned, queued

TASK = queued("t", project="web", kind="plan", pool="p", group="sub")
GROUPS = [Group("top"), Group("sub", "top")]


@pytest.mark.parametrize(
    "scope", ["all", "project:web", "kind:plan", "pool:p", "group:sub", "group:top"]
)
def test_a_pause_of_its_scope_holds_a_lane(scope):
    assert code("t", [TASK], groups=GROUPS, paused=[pause(scope)]) == ("paused", "paused")


@pytest.mark.parametrize("scope", ["project:api", "kind:code", "pool:q", "group:other", "task:x"])
def test_a_pause_of_another_scope_does_not(scope):
    assert picks([TASK], groups=GROUPS, paused=[pause(scope)]) == ["t"]


def test_the_sentence_says_who_paused_what_since_when():
    said = hold("t", [TASK], paused=[pause("project:web")]).reason
    assert said == "project web is paused by ann since 2026-01-30T12:00:00Z: lunch"


@pytest.mark.parametrize("status", ["paused", "archived"])
def test_a_project_that_is_not_active_is_held(status):
    project = Project("web", status=status)
    assert hold("t", [TASK], projects=[project]).reason == f"project web is {status}"


def test_a_task_paused_by_itself_waits_and_the_others_go_on():
    plan = planned([TASK, queued("u", project="web")], paused=[pause("task:t")])
    assert [pick.task for pick in plan.picks] == ["u"]
    assert [(h.hold.gate, h.hold.code, h.tasks) for h in plan.holds] == [
        ("readiness", "paused", ("t",))
    ]


def test_everything_paused_is_the_reason():
    assert planned([TASK], paused=["all"]).reason == "paused"
    assert planned([], paused=["all"]).reason == "paused"
