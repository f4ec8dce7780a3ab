"""Planning as an operation: the same document for every interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.model.errors import NotFound
from fairlane.planner.digest import digests
from fairlane.service import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.model.instant import Instant
    from fairlane.model.plan import Plan
    from fairlane.model.snapshot import Snapshot
    from fairlane.planner.why import Why
    from fairlane.policy.policy import Policy
    from fairlane.service.scenario.read import Scenario

PLANNERS = ("lanes", "reference")


def plan_document(plan: Plan, snapshot: Snapshot, policy: Policy) -> dict[str, Any]:
    """A plan as every interface gives it, with the digests of what it was made from."""
    named = digests(snapshot, policy, plan)
    return {"schema": SCHEMA, **plan.document(), "digests": named}


def plan_scenario(scenario: Scenario, planner: str = "lanes") -> Plan:
    """The plan of a hand-written situation, by either planner."""
    return _planner(planner)(scenario.snapshot, scenario.policy, scenario.now)


def check_scenario(scenario: Scenario, plan: Plan) -> list[str]:
    """Where the plan differs from what the scenario expects."""
    from fairlane.service.scenario.expect import check

    return check(scenario, plan)


def why_scenario(scenario: Scenario, task_id: str) -> Why:
    """Why one task of a hand-written situation does not start, or that it does."""
    from fairlane.planner.why import why
    from fairlane.service.scenario.fields import nearest

    ids = [task.id for task in scenario.tasks]
    if task_id not in ids:
        raise NotFound(
            f"there is no task {task_id!r}", nearest(task_id, ids) or f"There are {len(ids)} tasks."
        )
    return why(scenario.snapshot, scenario.policy, scenario.now, task_id)


def why_document(answer: Why) -> dict[str, Any]:
    """An explanation as every interface gives it."""
    return {"schema": SCHEMA, **answer.document()}


def _planner(name: str) -> Callable[[Snapshot, Policy, Instant], Plan]:
    if name == "reference":
        from fairlane.planner import reference

        return reference.plan
    from fairlane.planner import lanes

    return lanes.plan
