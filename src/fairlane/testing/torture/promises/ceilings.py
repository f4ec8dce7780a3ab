"""Ceilings: what a new lease must not break, by the rules in force when it was committed."""

from __future__ import annotations

from fairlane.model.task import Attempt, Status, Task
from fairlane.testing.torture.promises import gates
from fairlane.testing.torture.promises.base import Commit, Problem, Problems, promise
from fairlane.testing.torture.promises.gates import Scene


@promise("lease", 1)
def caps(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """A new lease exceeds no cap: neither `all` nor kind, project, pool, agent, group, label."""
    if not attempt.direct and (why := gates.capped(scene, task)):
        yield Problem(why, task.id)


@promise("lease", 1)
def locks(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """A new lease takes no lock that somebody holds."""
    if why := gates.locked(scene, task):
        yield Problem(why, task.id)


@promise("lease", 1)
def workspaces(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """A new lease takes no workspace that is taken, and the one that its task prefers."""
    there = [row for row, _ in scene.flying if row.project == attempt.project]
    taken = {row.workspace: row.task for row in there if row.workspace is not None}
    holder = taken.get(attempt.workspace) if attempt.workspace is not None else None
    if holder is not None:
        yield Problem(f"workspace {attempt.workspace} is taken by {holder}", task.id)
    if task.workspace is not None and attempt.workspace != task.workspace:
        yield Problem(f"it works in {attempt.workspace}, not in {task.workspace}", task.id)
    names = scene.model.projects[task.project].workspaces
    if names is not None and task.workspace is None and attempt.workspace not in names:
        yield Problem(f"workspace {attempt.workspace} is none of {list(names)}", task.id)


@promise("lease", 1)
def budgets(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """Nothing starts where a budget is spent or reserved to its limit."""
    if why := gates.spent(scene, task):
        yield Problem(why, task.id)


@promise("lease", 1)
def cooldowns(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """Nothing starts in a pool that cools down, and then no more than the probes."""
    if why := gates.cooling(scene, task):
        yield Problem(why, task.id)


@promise("lease", 1)
def pauses(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """Nothing starts that is paused by itself, its project, kind, pool, or a group above it."""
    if task.paused:
        yield Problem("it is paused by itself", task.id)
    if why := gates.paused(scene, task):
        yield Problem(why, task.id)


@promise("lease", 1)
def places(commit: Commit, scene: Scene, attempt: Attempt, task: Task) -> Problems:
    """A new lease is of a worker with the labels of its task."""
    if why := gates.unfit(scene, task):
        yield Problem(why, task.id)


class Batch:
    """How many have started in the interval, counted once more."""

    def __init__(self) -> None:
        self.since, self.count = -(1 << 62), 0

    def exceeded(self, commit: Commit, attempt: Attempt) -> bool:
        """Count a start; whether it is one too many."""
        most = commit.policy.capacity.batch
        if most is None:
            return False
        if attempt.leased_at >= self.since + commit.policy.cycle.interval:
            self.since, self.count = attempt.leased_at, 0
        self.count += 1
        return self.count > most


@promise("ready", 1)
def readiness(commit: Commit, before: Task, wait: str, attempt: Attempt) -> Problems:
    """A new lease is of a queued task that waits for nothing."""
    if before.status is not Status.QUEUED:
        yield Problem(f"it was {before.status} when it was leased", before.id)
    elif wait:
        yield Problem(f"it waited with code {wait} when it was leased", before.id)
