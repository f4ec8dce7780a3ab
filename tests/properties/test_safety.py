"""Ceilings are never exceeded, and every task that does not start has a hold that is true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.task import Task
from fairlane.planner import lanes
from fairlane.planner.why import why
from tests.properties.oracle import Oracle
from tests.properties.safety import check
from tests.properties.strategies import BALANCED, NOW, World, worlds


@given(worlds(60))
def test_no_ceiling_is_exceeded(world):
    check(world)


@pytest.mark.soak
@given(worlds(300))
def test_no_ceiling_is_exceeded_in_large_worlds(world):
    check(world)


@given(worlds(40))
def test_a_hold_of_the_plan_is_true(world):
    oracle = Oracle(world).play()
    ready = {task.id for task in oracle.ready}
    for held in lanes.plan(*world.args).holds:
        for name in held.tasks:
            task = oracle.by_id[name]
            facts = oracle.holds(task) if name in ready else oracle.waits(task)
            codes = [fact.code for fact in facts]
            if held.hold.code == "batch":
                assert not codes
                assert oracle.batch_left() == 0
            else:
                assert held.hold.code == codes[0]


@given(worlds(12))
def test_why_names_every_rule_that_holds_a_task(world):
    snapshot, policy, now = world.args
    oracle = Oracle(world).play()
    picked = {each.task.id for each in oracle.picks}
    for task in [*oracle.ready, *oracle.waiting]:
        answer = why(snapshot, policy, now, task.id)
        codes = [(hold.gate, hold.code) for hold in answer.holds]
        facts = [*oracle.waits(task), *oracle.holds(task)]
        if task.id in picked:
            assert (answer.verdict, codes) == ("starts now", [])
            continue
        facts += [oracle.batch_fact()] if oracle.batch_left() == 0 else []
        assert codes
        assert codes == [(fact.gate, fact.code) for fact in facts]


@given(worlds(12))
def test_a_place_counts_the_ready_tasks_of_the_project(world):
    snapshot, policy, now = world.args
    oracle = Oracle(world)
    for task in oracle.ready:
        answer = why(snapshot, policy, now, task.id)
        mine = [each for each in oracle.ready if each.project == task.project]
        ahead = [each.id for each in sorted(mine, key=oracle.place)]
        ahead = ahead[: ahead.index(task.id)]
        assert answer.position == len(ahead) + 1
        assert list(answer.ahead) == ahead[:10]


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 12), st.integers(0, 4))
def test_as_many_start_as_room_batch_and_ready_tasks_allow(cap, batch, ready, flying):
    policy = BALANCED.with_overrides({"caps.all": cap, "capacity.batch": batch})
    tasks = [Task(f"r{n}", n, status="running") for n in range(1, flying + 1)]  # type: ignore[arg-type]
    tasks += [Task(f"q{n}", flying + n, created_at=NOW) for n in range(1, ready + 1)]
    plan = lanes.plan(*World(tuple(tasks), policy).args)
    assert len(plan.picks) == max(0, min(cap - flying, batch, ready))
