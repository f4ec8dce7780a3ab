"""What a task is and where it counts, as the rules have it: what the oracle stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from fairlane.model.instant import Instant
from fairlane.model.project import Project
from fairlane.model.task import Task
from tests.properties.strategies import World


class Fact(NamedTuple):
    """One thing that holds a task."""

    gate: str
    code: str
    until: Instant | None = None


@dataclass(frozen=True)
class Flying:
    """A task in flight, as it is or as it was picked."""

    task: Task
    worker: str | None
    space: str | None
    estimate: int
    used: int = 0
    started: Instant | None = None


class Plain:
    """A world by name."""

    def __init__(self, world: World) -> None:
        self.world, self.now, self.policy = world, world.now, world.policy
        self.by_id = {task.id: task for task in world.tasks}
        self.projects = {project.name: project for project in world.projects}
        for task in world.tasks:
            self.projects.setdefault(task.project, Project(task.project))
        self.groups = {group.name: group.parent for group in world.groups}
        self.depths = {task.id: self.depth(task) for task in world.tasks}

    def depth(self, task: Task) -> int:
        if task.depth or task.parent is None:
            return task.depth
        count, above = 0, self.by_id[task.id].parent
        while above is not None:
            count, above = count + 1, self.by_id[above].parent
        return count

    def lane(self, task: Task) -> tuple[Any, ...]:
        return (
            task.project, task.kind, task.priority, self.depths[task.id], task.failures,
            task.agent, task.pool, task.parallel, frozenset(task.locks), task.workspace,
            frozenset(task.labels), task.group,
        )  # fmt: skip

    def since(self, task: Task) -> Instant:
        if self.policy.score.age_from == "created":
            return task.created_at
        if task.ready_since is not None:
            return task.ready_since
        return max(task.created_at, task.not_before or 0, task.backoff_until or 0)

    def scopes(self, task: Task) -> list[str]:
        names = ["all", f"kind:{task.kind}", f"project:{task.project}"]
        names += [f"pool:{task.pool}"] if task.pool else []
        names += [f"agent:{task.agent}"] if task.agent else []
        group = task.group
        while group is not None:
            names.append(f"group:{group}")
            group = self.groups.get(group)
        return names + [f"label:{label}" for label in sorted(set(task.labels))]

    def locks(self, task: Task) -> list[str]:
        rules = self.policy.locks
        parallel = rules.parallel_default if task.parallel is None else task.parallel
        names = sorted(set(task.locks))
        if parallel or rules.serial == "none":
            return names
        of = ("group", task.group) if task.group else ("project", task.project)
        return [*names, f"serial {of} {task.kind}"]

    def estimate(self, task: Task, known: int | None) -> int:
        if known is not None:
            return known
        for row in self.world.history:
            if (row.project, row.kind, row.agent) == (task.project, task.kind, task.agent):
                return row.estimate
        return self.policy.share.default_estimate

    def ended(self, task: Task) -> bool:
        lease = task.lease
        if lease is None or lease.expires_at is None or lease.alive:
            return False
        return lease.expires_at <= self.now

    def flight(self, task: Task) -> Flying:
        lease, space = task.lease, self.world.spaces.get(task.id, task.workspace)
        if lease is None:
            return Flying(task, None, space, self.estimate(task, None))
        estimate = self.estimate(task, lease.estimate)
        return Flying(task, lease.worker, space, estimate, lease.used, lease.started_at)


def scaled(tokens: int, weight: int) -> int:
    return tokens * 10**6 // weight if weight else 0
