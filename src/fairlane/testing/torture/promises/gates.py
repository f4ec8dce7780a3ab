"""What may keep a task from starting at one moment; each gives a sentence, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairlane.model.instant import SECOND, Instant, show_instant
from fairlane.model.project import Budget, History, Pause, Pool, WorkerRow
from fairlane.model.task import Attempt, Task
from fairlane.policy.policy import Policy
from fairlane.testing.torture.model import Model, facts

#: A probe that ran so long without a throttle has proved its pool healthy.
PROVED_AFTER = 60 * SECOND


class Scene(NamedTuple):
    """One moment: who asks, what is in flight by then, and the rules in force."""

    model: Model
    policy: Policy
    now: Instant
    flying: list[tuple[Attempt, Task]]
    worker: str | None = None
    agents: frozenset[str] | None = None


def paused(scene: Scene, task: Task) -> str:
    """Nothing starts in a scope that is paused: itself, its project, kind, pool, groups above."""
    tables = scene.model.tables
    for name in (f"task:{task.id}", *facts.cap_names(task, scene.model.groups)):
        if name in tables[Pause]:
            return f"{name} is paused"
    status = scene.model.projects[task.project].status
    return f"project {task.project} is {status}" if status != "active" else ""


def cooling(scene: Scene, task: Task) -> str:
    """Nothing starts in a pool that cools down; afterwards no more than the probes."""
    pool: Pool | None = scene.model.tables[Pool].get(task.pool or "")
    if pool is None or task.pool is None:
        return ""
    until = pool.until or 0
    if until > scene.now:
        return f"pool {pool.name} cools down until {show_instant(until)}"
    if not pool.hits:
        return ""
    mine = [row for row, other in scene.flying if other.pool == task.pool]
    probes = [row for row in mine if row.leased_at >= until]
    if any(_has_proved(scene, row) for row in probes):
        return ""
    most = scene.policy.cooldown.probe
    tried_by = ", ".join(row.task for row in probes)
    return f"pool {pool.name} is being tried by {tried_by}" if len(probes) >= most else ""


def _has_proved(scene: Scene, row: Attempt) -> bool:
    used = facts.count_tokens(row.tokens, scene.policy)
    return bool(used) or scene.now - row.leased_at >= PROVED_AFTER


def spent(scene: Scene, task: Task) -> str:
    """Nothing starts where what was spent and what is reserved reach the limit of a budget."""
    model = scene.model
    names = facts.budget_names(task.project, task, model.groups)
    for budget in facts.budgets_of(names, scene.policy, model.projects):
        limit = budget.tokens if budget.tokens is not None else budget.usd or 0
        used, reserved = used_of(model, budget, scene.policy, scene.now), _reserved(scene, budget)
        if used + reserved >= limit:
            return f"budget of {budget.scope}: {used} used and {reserved} reserved of {limit}"
    return ""


def used_of(model: Model, budget: Budget, policy: Policy, now: Instant) -> int:
    """What was spent of a budget: tokens that count, or micro-dollars."""
    sums = model.booked(budget.scope, facts.window_begin(budget.window, now))
    if budget.tokens is None:
        return sums[4]
    return facts.count_tokens((sums[0], sums[1], sums[2], sums[3]), policy)


def _reserved(scene: Scene, budget: Budget) -> int:
    """What attempts in flight may still use of it."""
    model, total = scene.model, 0
    for row, task in scene.flying:
        if budget.scope not in facts.budget_names(row.project, task, model.groups):
            continue
        left = max(0, row.estimate - facts.count_tokens(row.tokens, scene.policy))
        if budget.tokens is None:
            key = "\0".join((task.project, task.kind, task.agent or ""))
            past: History | None = model.tables[History].get(key)
            left = left * past.usd // past.tokens if past is not None and past.tokens else 0
        total += left
    return total


def capped(scene: Scene, task: Task) -> str:
    """No more are in flight than each cap allows."""
    groups = scene.model.groups
    for name in facts.cap_names(task, groups):
        cap = facts.cap_of(name, scene.policy, scene.model.projects)
        if cap is None:
            continue
        count = sum(name in facts.cap_names(other, groups) for _, other in scene.flying)
        if count >= cap:
            return f"cap {name} is full: {count} of {cap} in flight"
    return ""


def locked(scene: Scene, task: Task) -> str:
    """A lock has one holder, the serial one too."""
    mine = facts.locks_of(task, scene.policy)
    for _, other in scene.flying if mine else ():
        both = sorted(mine & facts.locks_of(other, scene.policy))
        if both:
            return f"lock {both[0]} is held by {other.id}"
    return ""


def crowded(scene: Scene, task: Task) -> str:
    """At most one attempt works in a workspace."""
    project = scene.model.projects[task.project]
    taken = {row.workspace: row.task for row, _ in scene.flying if row.project == task.project}
    for stale in scene.model.values.get("stale_workspaces") or ():
        if stale["project"] == task.project and stale["until"] > scene.now:
            taken.setdefault(stale["workspace"], stale["task"])
    if task.workspace is not None:
        holder = taken.get(task.workspace)
        return f"workspace {task.workspace} is taken by {holder}" if holder else ""
    names = project.workspaces
    if names is None or any(name not in taken for name in names):
        return ""
    return f"no workspace of {task.project} is free"


def unfit(scene: Scene, task: Task) -> str:
    """The worker has the labels, and its settings know the agent."""
    row: WorkerRow | None = scene.model.tables[WorkerRow].get(scene.worker or "")
    if row is not None and not set(task.labels) <= set(row.labels):
        return f"worker {row.name} has labels {sorted(row.labels)}, not {sorted(task.labels)}"
    if scene.agents is not None and task.agent is not None and task.agent not in scene.agents:
        return f"agent {task.agent} is not known there"
    return ""


Gate = Callable[[Scene, Task], str]
#: Every gate but the caps, which a start in direct mode passes.
ALWAYS: tuple[Gate, ...] = (paused, cooling, spent, locked, crowded, unfit)
GATES: tuple[Gate, ...] = (*ALWAYS, capped)


def hold_of(scene: Scene, task: Task) -> str:
    """What keeps a task from starting now; empty: nothing."""
    return next(filter(None, (gate(scene, task) for gate in GATES)), "")
