"""What must never be true after a plan, counted anew from the tasks."""

from __future__ import annotations

from fairlane.model.plan import Plan
from fairlane.planner import lanes
from tests.properties.oracle import Oracle
from tests.properties.plain import Flying
from tests.properties.strategies import World


def check(world: World) -> Plan:
    """The plan of this world, after every ceiling was counted again."""
    plan = lanes.plan(*world.args)
    facts = Oracle(world)
    before, after = facts.flying, [*facts.flying, *started(plan, facts)]
    caps_hold(facts, before, after)
    locks_hold(facts, before, after)
    workspaces_hold(facts, before, after)
    slots_hold(facts, before, after)
    probes_hold(facts, before, after)
    batch_holds(facts, plan)
    starts_may_start(facts, plan)
    nobody_is_forgotten(facts, plan)
    return plan


def started(plan: Plan, facts: Oracle) -> list[Flying]:
    return [
        Flying(facts.by_id[p.task], p.worker, p.workspace, p.estimate, 0, facts.now)
        for p in plan.picks
    ]


def caps_hold(facts: Oracle, before: list[Flying], after: list[Flying]) -> None:
    for scope in {scope for each in after for scope in facts.scopes(each.task)}:
        cap = facts.cap(scope)
        if cap is not None:
            assert facts.count(scope, after) <= max(cap, facts.count(scope, before)), scope


def locks_hold(facts: Oracle, before: list[Flying], after: list[Flying]) -> None:
    taken = [lock for each in before for lock in facts.locks(each.task)]
    for each in after[len(before) :]:
        for lock in facts.locks(each.task):
            assert lock not in taken, f"{lock} is taken twice"
            taken.append(lock)


def workspaces_hold(facts: Oracle, before: list[Flying], after: list[Flying]) -> None:
    taken = {(each.task.project, each.space) for each in before}
    for each in after[len(before) :]:
        declared = facts.projects[each.task.project].workspaces
        if each.task.workspace is not None:
            assert each.space == each.task.workspace
        elif declared is None:
            assert each.space is None
            continue
        else:
            assert each.space in declared
        assert (each.task.project, each.space) not in taken, f"{each.space} is taken twice"
        taken.add((each.task.project, each.space))


def slots_hold(facts: Oracle, before: list[Flying], after: list[Flying]) -> None:
    for worker in facts.workers:
        counts = [sum(1 for e in all_ if e.worker == worker.name) for all_ in (before, after)]
        if facts.assumed:
            counts = [len(before), len(after)]
        if worker.slots is not None:
            assert counts[1] <= max(worker.slots, counts[0]), f"{worker.name} is overfull"
    able = {worker.name: set(worker.labels) for worker in facts.workers}
    for each in after[len(before) :]:
        assert set(each.task.labels) <= able[each.worker or ""], "on a worker that cannot"


def probes_hold(facts: Oracle, before: list[Flying], after: list[Flying]) -> None:
    """Nothing starts in a pool that rests; in one that is not proved, only the probes."""
    new = after[len(before) :]
    for pool in facts.world.pools:
        mine = [each for each in new if each.task.pool == pool.name]
        if pool.until is not None and pool.until > facts.now:
            assert not mine, f"{pool.name} rests"
        if mine and not facts.is_proved(pool):
            begun = facts.probes(pool, before)
            assert len(begun) + len(mine) <= facts.policy.cooldown.probe, f"{pool.name} unproved"


def batch_holds(facts: Oracle, plan: Plan) -> None:
    most = facts.batch_left()
    assert most is None or len(plan.picks) <= most


def starts_may_start(facts: Oracle, plan: Plan) -> None:
    """Nobody starts who is waiting, paused, without an agent, or without budget at that moment."""
    ready = {task.id for task in facts.ready}
    for pick in started(plan, facts):
        assert pick.task.id in ready
        assert not list(facts.paused(pick.task))
        assert not list(facts.budget(pick.task))
        facts.flying.append(pick)
    facts.flying = facts.flying[: len(facts.flying) - len(plan.picks)]


def nobody_is_forgotten(facts: Oracle, plan: Plan) -> None:
    """Picked once, or counted once in the holds."""
    picked = [pick.task for pick in plan.picks]
    assert len(set(picked)) == len(picked)
    queued = len(facts.ready) + len(facts.waiting)
    assert len(picked) + sum(held.count for held in plan.holds) == queued
    for held in plan.holds:
        assert not set(held.tasks) & set(picked)
        assert len(held.tasks) == min(5, held.count)
