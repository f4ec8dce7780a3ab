"""What is recorded is read back the same: snapshots as documents, and their bytes."""

from __future__ import annotations

import json
from fractions import Fraction

from hypothesis import given

from fairlane.model.codec import canonical, decode, encode
from fairlane.model.project import Budget, Project
from fairlane.model.snapshot import Snapshot, WaitCount
from fairlane.model.task import Status
from fairlane.planner import lanes
from fairlane.planner.conclude import plan_bytes
from tests.properties.strategies import worlds


@given(worlds(40))
def test_a_snapshot_survives_its_document(world):
    snapshot, policy, now = world.args
    document = json.loads(canonical(encode(snapshot)))
    again = decode(Snapshot, document)
    assert again == snapshot
    assert canonical(encode(again)) == canonical(encode(snapshot))
    assert plan_bytes(lanes.plan(again, policy, now)) == plan_bytes(
        lanes.plan(snapshot, policy, now)
    )


def test_what_has_its_default_is_left_out():
    assert encode(Snapshot()) == {}
    assert encode(Project("web")) == {"name": "web"}


def test_fractions_statuses_and_nothing_are_kept():
    budget = Budget("all", tokens=5, warn_at=Fraction(1, 3))
    project = Project("web", budgets=(budget,), workspaces=(), clock=0, present=False)
    snapshot = Snapshot(
        projects={"web": project},
        groups={"g": None, "h": "g"},
        wait_counts=(WaitCount("needs", 2, ("a",), 7),),
        agents=(),
        ended={"t": Status.PARKED},
    )
    again = decode(Snapshot, json.loads(canonical(encode(snapshot))))
    assert again == snapshot
    assert again.ended["t"] is Status.PARKED
    assert again.projects["web"].budgets[0].warn_at == Fraction(1, 3)


def test_canonical_does_not_depend_on_the_order_of_keys():
    assert (
        canonical({"b": 1, "a": "é"}) == canonical({"a": "é", "b": 1}) == '{"a":"é","b":1}'.encode()
    )
