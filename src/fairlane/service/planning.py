"""Planning as an operation: the same document for every interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.model.errors import NotFound
from fairlane.model.names import SCHEMA
from fairlane.planner.conclude import digests

if TYPE_CHECKING:
    from fairlane.engine.context import Context
    from fairlane.model.documents.reports import PlanAnswer
    from fairlane.model.plan import Plan
    from fairlane.model.snapshot import Snapshot
    from fairlane.planner.why import Why
    from fairlane.policy.policy import Policy
    from fairlane.service.scenario.read import Scenario

PLANNERS = ("lanes", "reference")


def plan(context: Context) -> PlanAnswer:
    """What a cycle would start now; changes nothing."""
    from fairlane.engine.look.planned import preview

    with context.store.read() as reading:
        snapshot, made, policy = preview(context, reading)
    return plan_document(made, snapshot, policy)


def plan_document(plan: Plan, snapshot: Snapshot, policy: Policy) -> PlanAnswer:
    """A plan as every interface gives it, with the digests of what it was made from."""
    named = digests(snapshot, policy, plan)
    return {"schema": SCHEMA, **plan.document(), "digests": named}


def plan_scenario(scenario: Scenario, planner: str = "lanes") -> Plan:
    """The plan of a hand-written situation, by either planner."""
    from fairlane.planner import lanes, reference

    plan = reference.plan if planner == "reference" else lanes.plan
    return plan(scenario.snapshot, scenario.policy, scenario.now)


def why_scenario(scenario: Scenario, task_id: str) -> Why:
    """Why one task of a hand-written situation does not start, or that it does."""
    from fairlane.planner.why import why
    from fairlane.service.scenario.world import nearest

    ids = [task.id for task in scenario.tasks]
    if task_id not in ids:
        raise NotFound(
            f"there is no task {task_id!r}", nearest(task_id, ids) or f"There are {len(ids)} tasks."
        )
    return why(scenario.snapshot, scenario.policy, scenario.now, task_id)
