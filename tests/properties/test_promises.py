"""Nobody is overtaken, the older way of sharing can be had, and absent projects do not count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairlane.model.project import Budget, Project, Worker
from fairlane.model.task import Status, Task, shape_of
from fairlane.planner import lanes
from fairlane.planner.round import Round
from fairlane.policy.policy import Policy
from tests.properties.oracle import Oracle
from tests.properties.strategies import BALANCED, NOW, World, worlds

SEEDS = st.integers(0, 2**48)


@given(worlds(60))
def test_an_overdue_task_that_can_start_is_not_overtaken_in_its_project(world):
    policy = world.policy.with_overrides(
        {"order": list(BALANCED.order), "overdue.after": "10m", "capacity.batch": "none"}
    )
    world = replace(world, policy=policy, seed=None)
    facts = Oracle(world)
    for pick in lanes.plan(*world.args).picks:
        picked = facts.by_id[pick.task]
        for other in facts.left():
            older = facts.since(other) < facts.since(picked)
            if other.project == picked.project and older and facts.overdue(other):
                assert facts.holds(other), f"{other.id} was overtaken by {picked.id}"
        facts.take(picked)


@given(worlds(60))
def test_what_an_overdue_task_can_take_is_reserved_for_nobody_younger(world):
    policy = world.policy.with_overrides({"overdue.after": "10m"})
    world = replace(world, policy=policy, seed=None)
    snapshot, policy, now = world.args
    facts = Oracle(world)
    facts.lock_owner, facts.space_owner = {}, {}
    round = Round(snapshot, policy, now)
    owners = {owner.task for owner in round.reserved_locks.values()}
    owners |= {owner.task for owner in round.reserved_workspaces.values()}
    for task in facts.ready:
        if facts.overdue(task) and not facts.holds(task):
            key = task.lane._replace(depth=facts.depths[task.id])
            for hold in round.all_holds(round.rules.of_lane(key, shape_of(key))):
                assert hold.code == "reserved"
                assert set(hold.holders) <= owners
                assert all(facts.since(facts.by_id[o]) <= facts.since(task) for o in hold.holders)


@dataclass(frozen=True)
class Rig:
    """A project as the older scheduler knew it."""

    name: str
    weight: int
    most: int
    used: int
    completed: int
    budget: int | None
    active: bool


def by_deficit(rigs: list[Rig], ready: list[Task], busy: dict[str, int], idle: int) -> list[str]:
    """One start for each idle agent: whoever completed nothing, then the largest deficit.

    Nothing that starts moves the shares of the others. Where two projects stand equal, the one
    whose next task comes first wins.
    """
    with_work = [rig for rig in rigs if rig.active and any(t.project == rig.name for t in ready)]
    weights = sum(rig.weight for rig in with_work)
    used = sum(rig.used for rig in with_work) or 1
    left, taken, picks = sorted(ready, key=lambda t: (t.priority, t.seq)), dict(busy), []
    for _ in range(idle):
        best = None
        for rig in with_work:
            mine = [task for task in left if task.project == rig.name]
            spent = rig.budget is not None and rig.used >= rig.budget
            if not mine or spent or taken.get(rig.name, 0) >= rig.most:
                continue
            deficit = Fraction(rig.used, used) - Fraction(rig.weight, weights)
            place = (rig.completed > 0, deficit, mine[0].priority, mine[0].seq)
            best = min(best or (place, mine[0]), (place, mine[0]), key=lambda pair: pair[0])
        if best is None:
            break
        picks.append(best[1].id)
        left.remove(best[1])
        taken[best[1].project] = taken.get(best[1].project, 0) + 1
    return picks


def older_state(seed: int) -> tuple[list[Rig], list[Task], int]:
    random = Random(seed)
    rigs = [
        Rig(
            name,
            random.randrange(1, 20),
            random.randrange(4),
            random.choice([0, 0, 500, 1_000, 40_000, 60_000]),
            random.randrange(3),
            random.choice([None, None, 1_000, 50_000]),
            random.random() < 0.9,
        )
        for name in ("a", "b", "c", "d")[: random.randrange(1, 5)]
    ]
    tasks = [
        Task(
            f"t{n}",
            n,
            random.choice(rigs).name,
            priority=random.choice([10, 100, 200]),
            created_at=NOW + n,
            status=random.choice([Status.QUEUED] * 5 + [Status.RUNNING]),
        )
        for n in range(1, random.randrange(2, 25))
    ]
    return rigs, tasks, random.randrange(6)


@given(SEEDS)
def test_frozen_deficit_picks_what_the_older_scheduler_picked(seed):
    rigs, tasks, idle = older_state(seed)
    projects = tuple(
        Project(
            rig.name,
            rig.weight,
            rig.most,
            () if rig.budget is None else (Budget(f"project:{rig.name}", tokens=rig.budget),),
            "active" if rig.active else "paused",
            tokens=rig.used,
            completions=rig.completed,
        )
        for rig in rigs
    )
    running = [task for task in tasks if task.status is Status.RUNNING]
    policy = Policy.preset("fair-share", {"caps.project:*": "none", "share.default_estimate": 0})
    slots = (Worker("agents", len(running) + idle),)
    tasks = [replace(task, lease=None) for task in tasks]
    world = World(tuple(tasks), policy, NOW + 100, projects, slots)
    busy = {rig.name: sum(1 for task in running if task.project == rig.name) for rig in rigs}
    # Those without a worker of their own still fill the agents.
    on_agents = {task.id: "agents" for task in running}
    snapshot = world.snapshot()
    snapshot = replace(
        snapshot,
        in_flight=tuple(
            replace(each, lease=replace(each.lease, worker=on_agents[each.task]))
            for each in snapshot.in_flight
        ),
    )
    ready = [task for task in tasks if task.status is Status.QUEUED]
    picks = lanes.plan(snapshot, policy, world.now).picks
    assert [pick.task for pick in picks] == by_deficit(rigs, ready, busy, idle)


@pytest.mark.parametrize("mode", ["deficit", "virtual-time"])
@given(worlds(40), st.integers(0, 10**9))
def test_usage_of_a_project_without_ready_work_does_not_change_the_order(mode, world, tokens):
    keys = {"share.mode": mode, "budget": []}
    world = replace(world, policy=world.policy.with_overrides(keys), seed=None)
    busy = {task.project for task in Oracle(world).ready}
    assume(any(project.name not in busy for project in world.projects))
    other = replace(
        world,
        projects=tuple(
            each if each.name in busy else replace(each, tokens=tokens, clock=tokens)
            for each in world.projects
        ),
    )
    picks = [[p.task for p in lanes.plan(*each.args).picks] for each in (world, other)]
    assert picks[0] == picks[1]
