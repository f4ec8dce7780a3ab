"""Small worlds, told in one line, planned by both planners."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlane.model.instant import MINUTE, Instant
from fairlane.model.plan import Hold, Plan
from fairlane.model.project import Pause
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Lease, Status, Task
from fairlane.planner import lanes, reference
from fairlane.planner.why import Why, why
from fairlane.policy.policy import Policy

NOW: Instant = 1_769_774_400_000_000
#: Fields of a snapshot that `Snapshot.of` does not take.
_LATER = ("clock", "batch_started", "batch_since", "agents", "wait_counts")


def policy(preset: str = "balanced", /, **keys: Any) -> Policy:
    """A preset with keys changed: `caps__all=2` is `caps.all`."""
    return Policy.preset(preset, {key.replace("__", "."): value for key, value in keys.items()})


def queued(id: str, age: int = 0, **fields: Any) -> Task:
    """A ready task, so many minutes old."""
    since = NOW - age * MINUTE
    return Task(id, **({"created_at": since, "ready_since": since} | fields))


def running(id: str, **fields: Any) -> Task:
    """A task in flight; fields of its lease may be given too."""
    names = ("expires_at", "started_at", "alive", "estimate", "used", "worker")
    lease = {name: fields.pop(name) for name in names if name in fields}
    status = fields.pop("status", Status.RUNNING)
    return Task(id, created_at=NOW, status=status, lease=Lease(f"l-{id}", **lease), **fields)


def snapshot(tasks: list[Task], **world: Any) -> Snapshot:
    """What planning reads."""
    later = {name: world.pop(name) for name in _LATER if name in world}
    return replace(Snapshot.of(tasks, **world), **later)


def planned(
    tasks: list[Task], rules: Policy | None = None, now: Instant = NOW, **world: Any
) -> Plan:
    """The plan on which both planners agree."""
    rules = rules or policy()
    seen = snapshot(tasks, **world)
    plan = lanes.plan(seen, rules, now)
    assert plan == reference.plan(seen, rules, now)
    return plan


def picks(*args: Any, **world: Any) -> list[str]:
    return [pick.task for pick in planned(*args, **world).picks]


def hold(task: str, *args: Any, **world: Any) -> Hold:
    """The hold of the lane in which this task stands."""
    return next(held.hold for held in planned(*args, **world).holds if task in held.tasks)


def code(task: str, *args: Any, **world: Any) -> tuple[str, str]:
    found = hold(task, *args, **world)
    return found.gate, found.code


def asked(task: str, tasks: list[Task], rules: Policy | None = None, **world: Any) -> Why:
    return why(snapshot(tasks, **world), rules or policy(), NOW, task)


def changes(*args: Any, **world: Any) -> list[dict[str, Any]]:
    return [change.apply for change in asked(*args, **world).would_start_if]


def pause(scope: str) -> Pause:
    return Pause(scope, "ann", NOW, "lunch")
