"""Gate `caps`: no more are in flight than the caps allow."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.project import Group, Project, Worker
from tests.unit.planner.scene import NOW, code, hold, picks, planned, policy, queued, running

FULL = {
    "project": "web", "kind": "plan", "pool": "p", "agent": "claude", "group": "sub",
    "labels": ("gpu",),
}  # fmt: skip
SCOPES = ("kind:plan", "project:web", "pool:p", "agent:claude", "group:sub", "group:top")


@pytest.mark.parametrize("scope", SCOPES)
def test_every_name_can_be_capped(scope):
    fields: dict[str, Any] = {key: value for key, value in FULL.items() if key != "labels"}
    tasks = [running("x", **fields), queued("a", **fields), queued("free")]
    plan = planned(tasks, policy(**{f"caps__{scope}": 1}), groups=[Group("sub", "top")])
    assert [pick.task for pick in plan.picks] == ["free"]
    found = plan.holds[0].hold
    assert (found.gate, found.code, found.holders) == ("caps", "cap", ("x",))
    assert found.reason == f"cap {scope} is full: 1 of 1 in flight"


def test_a_label_can_be_capped():
    tasks = [queued("a", labels=("gpu",)), queued("b", labels=("gpu",)), queued("c")]
    world = {"workers": [Worker("box", 9, ("gpu",))]}
    assert picks(tasks, policy(**{"caps__label:gpu": 1}), **world) == ["a", "c"]


def test_an_exact_name_wins_over_the_star():
    rules = policy(**{"caps__kind:*": 1, "caps__kind:plan": 2})
    tasks = [queued(f"{kind}{n}", kind=kind) for n in range(3) for kind in ("plan", "code")]
    assert sorted(picks(tasks, rules)) == ["code0", "plan0", "plan1"]


@pytest.mark.parametrize(
    ("own", "named", "star", "expected"),
    [(2, None, 1, 2), (2, 1, None, 1), (1, 2, None, 1), (None, 2, 1, 2), (None, None, 1, 1)],
)
def test_a_project_s_own_number_wins_over_the_star_and_the_smaller_name_holds(
    own, named, star, expected
):
    keys = {"caps__project:web": named, "caps__project:*": star}
    rules = policy(**{key: value for key, value in keys.items() if value is not None})
    tasks = [queued(f"t{n}", project="web") for n in range(4)]
    world = {"projects": [Project("web", max_in_flight=own)]}
    assert len(picks(tasks, rules, **world)) == expected


def test_a_cap_of_0_is_misconfigured():
    found = hold("a", [queued("a")], policy(**{"caps__kind:code": 0}))
    assert (found.code, found.misconfigured) == ("cap_zero", True)


def test_a_lowered_cap_kills_nothing_and_starts_nothing():
    plan = planned([running("x"), running("y"), running("z"), queued("a")], policy(caps__all=2))
    assert (plan.picks, plan.reclaims, plan.reason) == ((), (), "capacity")
    assert plan.room.document() == {"cap": 2, "in_flight": 3, "free": 0}


def test_an_expired_lease_does_not_count_and_one_seen_alive_does():
    rules = policy(caps__all=1)
    assert picks([running("x", expires_at=NOW), queued("a")], rules) == ["a"]
    alive = running("x", expires_at=NOW, alive=True)
    assert code("a", [alive, queued("a")], rules) == ("caps", "cap")
