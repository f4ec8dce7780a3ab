"""Plain rules about tasks, caps, locks, budgets and windows, written once more from the book.

Nothing here is shared with the planner or the engine: what both get wrong, nobody would find.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from fairlane.model.instant import MINUTE, Instant, instant, parse_duration, to_datetime
from fairlane.model.project import Budget, Group, Project
from fairlane.model.task import Task
from fairlane.policy.policy import Policy

#: The names of the four counters of an attempt, in their order.
COUNTERS = ("input", "output", "cache_read", "cache_write")


def lineage(group: str | None, groups: Mapping[str, Group]) -> list[str]:
    """A group, its parent, and so on."""
    names: list[str] = []
    while group is not None and group not in names:
        names.append(group)
        row = groups.get(group)
        group = row.parent if row is not None else None
    return names


def cap_names(task: Task, groups: Mapping[str, Group]) -> list[str]:
    """Under which names a task counts when it is in flight."""
    names = ["all", f"kind:{task.kind}", f"project:{task.project}"]
    names += [f"pool:{task.pool}"] if task.pool is not None else []
    names += [f"agent:{task.agent}"] if task.agent is not None else []
    names += [f"group:{name}" for name in lineage(task.group, groups)]
    return names + [f"label:{label}" for label in sorted(set(task.labels))]


def budget_names(project: str, task: Task, groups: Mapping[str, Group]) -> list[str]:
    """Under which names the usage of an attempt counts; `project`: of the attempt."""
    names = ["all", f"project:{project}"]
    names += [f"pool:{task.pool}"] if task.pool is not None else []
    return names + [f"group:{name}" for name in lineage(task.group, groups)]


def cap_of(name: str, policy: Policy, projects: Mapping[str, Project]) -> int | None:
    """Most tasks in flight under this name; None: no limit."""
    exact = policy.caps.get(name)
    sort, _, rest = name.partition(":")
    own = projects[rest].max_in_flight if sort == "project" and rest in projects else None
    if own is not None:
        return own if exact is None else min(own, exact)
    if exact is not None or not rest:
        return exact
    return policy.caps.get(f"{sort}:*")


def locks_of(task: Task, policy: Policy) -> set[str]:
    """The locks that a task holds while it is in flight."""
    locks = set(task.locks)
    parallel = policy.locks.parallel_default if task.parallel is None else task.parallel
    if not parallel and policy.locks.serial == "group+kind":
        place = f"group {task.group}" if task.group else f"project {task.project}"
        locks.add(f"serial {place} {task.kind}")  # no name has a space
    return locks


def budgets_of(
    names: Iterable[str], policy: Policy, projects: Mapping[str, Project]
) -> list[Budget]:
    """The budgets of the policy and of projects that cover one of these names."""
    rows = [*policy.budget, *(row for each in projects.values() for row in each.budgets)]
    if not rows:
        return []
    covered = set(names)
    return [row for row in rows if row.scope in covered]


def count_tokens(tokens: tuple[int, int, int, int], policy: Policy) -> int:
    """The counters that the policy counts."""
    wanted = set(policy.usage.count)
    return sum(n for name, n in zip(COUNTERS, tokens, strict=True) if name in wanted)


def clock_time(tokens: int, weight: int) -> int:
    """How far tokens move the share clock of a project."""
    return tokens * 10**6 // weight if weight else 0


def window_begin(window: str, now: Instant) -> Instant | None:
    """The first minute that a window still holds; None: it holds all."""
    if window == "total":
        return None
    if window in ("day", "week", "month"):
        at = to_datetime(now)
        day = datetime(at.year, at.month, at.day, tzinfo=at.tzinfo)
        if window == "week":
            day -= timedelta(days=at.weekday())
        return instant(day.replace(day=1) if window == "month" else day)
    return (now - parse_duration(window)) // MINUTE * MINUTE
