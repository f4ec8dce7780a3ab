"""What `why` proposes is true: applied, by its function or by its document, it starts the task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given

from fairlane.model.instant import parse_instant
from fairlane.model.plan import Plan
from fairlane.model.project import Project
from fairlane.model.task import Status
from fairlane.planner import lanes
from fairlane.planner.round import Round
from fairlane.planner.tries import Tries, found, holds_of
from fairlane.planner.why import why
from tests.properties.oracle import Oracle
from tests.properties.strategies import World, worlds

FORMS = ("at", "end", "exist", "resume", "policy")


def applied(world: World, document: dict[str, Any]) -> World:
    """The world after a change, from what a program reads of it."""
    for form, value in document.items():
        for each in value if isinstance(value, list) else [value]:
            world = APPLY[form](world, each)
    return world


def end(world: World, name: str) -> World:
    task = next(each for each in world.tasks if each.id == name)
    done = replace(task, status=Status.DONE, lease=None)
    projects = {project.name: project for project in world.projects}
    mine = projects.get(task.project, Project(task.project))
    pools = world.pools
    if task.lease is not None:
        mine = replace(mine, tokens=mine.tokens + task.lease.used)
        started = task.lease.started_at
        pools = tuple(
            replace(pool, hits=0)
            if pool.name == task.pool and started is not None and started >= (pool.until or 0)
            else pool
            for pool in world.pools
        )
    return replace(
        world,
        tasks=tuple(done if each is task else each for each in world.tasks),
        projects=tuple((projects | {mine.name: mine}).values()),
        pools=pools,
        seed=None,
    )


def resume(world: World, scope: str) -> World:
    active = tuple(
        replace(each, status="active") if scope == f"project:{each.name}" else each
        for each in world.projects
    )
    tasks = tuple(
        replace(each, paused=False) if scope == f"task:{each.id}" else each for each in world.tasks
    )
    paused = tuple(each for each in world.paused if each.scope != scope)
    return replace(world, paused=paused, projects=active, tasks=tasks, seed=None)


def exist(world: World, name: str) -> World:
    tasks = tuple(
        replace(each, artifacts_missing=tuple(set(each.artifacts_missing) - {name}))
        for each in world.tasks
    )
    return replace(world, tasks=tasks, seed=None)


APPLY: dict[str, Any] = {
    "at": lambda world, time: replace(world, now=parse_instant(time), seed=None),
    "end": end,
    "exist": exist,
    "resume": resume,
    "policy": lambda world, keys: replace(world, policy=world.policy.with_overrides(keys)),
}


def starts(plan: Plan, task: str) -> bool:
    return any(pick.task == task for pick in plan.picks)


@given(worlds(12))
def test_every_proposed_change_starts_the_task(world):
    facts = Oracle(world)
    args = (snapshot, policy, now) = world.args
    for task in [*facts.ready, *facts.waiting]:
        for change in why(snapshot, policy, now, task.id).would_start_if:
            document = change.document()
            assert starts(lanes.plan(*change.to(args)), task.id), document
            assert starts(lanes.plan(*applied(world, document["apply"]).args), task.id), document


@given(worlds(12))
def test_changes_come_in_their_order_and_pairs_only_where_no_single_one_is_enough(world):
    facts = Oracle(world)
    snapshot, policy, now = world.args
    for task in [*facts.ready, *facts.waiting]:
        forms = [list(each.apply) for each in why(snapshot, policy, now, task.id).would_start_if]
        single = [FORMS.index(form[0]) for form in forms if len(form) == 1]
        if len(forms) > 1:
            assert len(single) == len(forms)
            assert single == sorted(single)


@given(worlds(12))
def test_a_try_says_what_the_whole_round_says(world):
    """It ends with the task, and leaves out the lanes behind it: nobody else decides."""
    facts = Oracle(world)
    args = world.args
    for task in [*facts.ready, *facts.waiting]:
        subject, round = found(args[0], task.id), Round(*args)
        lanes.play(round)
        assert subject is not None
        tries = Tries(args, subject, round, holds_of(round, subject, ())[1])
        assert tries.picks(Round(*args)) == starts(lanes.plan(*args), task.id)
        for change in tries.firsts():
            after = change.to(args)
            assert tries.picks(Round(*after)) == starts(lanes.plan(*after), task.id), change
