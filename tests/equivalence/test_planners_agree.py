"""Whatever the world: the lane planner, the reference and the plain rules give one answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.plan import Plan
from fairlane.planner import lanes, reference
from fairlane.planner.conclude import digests, plan_bytes
from tests.properties.oracle import Oracle
from tests.properties.strategies import World, with_keys, worlds


def agreed(world: World) -> Plan:
    """The plan of both planners, which must be the same in every byte."""
    snapshot, policy, now = world.args
    fast = lanes.plan(snapshot, policy, now)
    plain = reference.plan(snapshot, policy, now)
    assert fast == plain
    assert plan_bytes(fast) == plan_bytes(plain)
    assert digests(snapshot, policy, fast) == digests(snapshot, policy, plain)
    return fast


def follows_the_rules(world: World) -> None:
    plan, oracle = agreed(world), Oracle(world).play()
    expected = [(e.task.id, e.worker, e.space, e.estimate) for e in oracle.picks]
    assert [(p.task, p.worker, p.workspace, p.estimate) for p in plan.picks] == expected
    assert [p.score.total for p in plan.picks] == [oracle.score(e.task) for e in oracle.picks]
    assert plan.reason == oracle.reason()
    assert plan.wake_at == oracle.wake_at()
    assert {reclaim.task for reclaim in plan.reclaims} == {task.id for task in oracle.lost}
    assert plan.room.in_flight == len(oracle.before)
    holds_follow(plan, oracle)
    if world.policy.share.mode == "virtual-time":
        present = {name for name, (_, there) in plan.clocks.projects.items() if there}
        assert plan.clocks.everyone == oracle.everyone
        assert {name: clock for name, (clock, _) in plan.clocks.projects.items()} == oracle.clocks
        assert present == oracle.present


def holds_follow(plan: Plan, oracle: Oracle) -> None:
    """Every lane left over with its first hold, in order; then the waiting, by code."""
    lanes_left: dict[object, list[str]] = {}
    for task in sorted(oracle.left(), key=oracle.place):
        lanes_left.setdefault(oracle.lane(task), []).append(task.id)
    rows = []
    for ids in lanes_left.values():
        fact = oracle.first_hold(oracle.by_id[ids[0]])
        rows.append((fact.gate, fact.code, fact.until, len(ids), tuple(ids[:5])))
    firsts = {task.id: oracle.waits(task)[0] for task in oracle.waiting}
    for code, count in sorted(Counter(fact.code for fact in firsts.values()).items()):
        ids = sorted((t for t in firsts if firsts[t].code == code), key=lambda t: int(t[1:]))
        untils = [firsts[each].until for each in ids]
        until = min((time for time in untils if time is not None), default=None)
        rows.append(("readiness", code, until, count, tuple(ids[:5])))
    assert [(h.hold.gate, h.hold.code, h.hold.until, h.count, h.tasks) for h in plan.holds] == rows


@given(worlds())
def test_both_planners_agree(world):
    agreed(world)


@given(worlds(8))
def test_both_planners_follow_the_rules(world):
    follows_the_rules(world)


@given(worlds(60))
def test_both_planners_follow_the_rules_in_a_crowd(world):
    follows_the_rules(world)


@pytest.mark.parametrize("mode", ["virtual-time", "deficit"])
@given(worlds(16, only=("room", "flights")))
def test_they_agree_whose_turn_it_is(mode, world):
    order = ["share", "priority", "age"]
    keys = {"share__mode": mode, "share__frozen": False, "share__guarantee": 0, "caps__all": 9}
    follows_the_rules(with_keys(world, **keys, order=order))


@given(worlds(16, only=("locks", "spaces", "flights")))
def test_they_agree_what_is_reserved_for_the_overdue(world):
    follows_the_rules(with_keys(world, overdue__after="10m"))


@given(worlds(16, only=("pools", "flights")))
def test_they_agree_who_may_try_a_pool(world):
    follows_the_rules(world)


@given(worlds(), st.integers(0, 2**32))
def test_the_order_of_what_is_given_does_not_matter(world, seed):
    random = Random(seed)

    def shuffled(values):
        return tuple(random.sample(values, len(values)))

    other = replace(
        world,
        tasks=shuffled(world.tasks),
        projects=shuffled(world.projects),
        workers=shuffled(world.workers),
        pools=shuffled(world.pools),
        usage=shuffled(world.usage),
        paused=shuffled(world.paused),
        groups=shuffled(world.groups),
        history=shuffled(world.history),
    )
    assert plan_bytes(lanes.plan(*world.args)) == plan_bytes(lanes.plan(*other.args))


@given(worlds())
def test_asked_twice_the_answer_is_the_same(world):
    snapshot, policy, now = world.args
    before = repr(snapshot)
    assert plan_bytes(lanes.plan(snapshot, policy, now)) == plan_bytes(
        lanes.plan(snapshot, policy, now)
    )
    assert repr(snapshot) == before


@pytest.mark.soak
@given(worlds(300))
def test_both_planners_agree_on_large_worlds(world):
    agreed(world)
