"""Where what is in flight works, when a scenario does not say: it takes room all the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.model.task import Task
    from fairlane.service.scenario.world import World


def placed(tasks: Sequence[Task], world: World) -> list[Task]:
    """The tasks, those in flight each with a workspace and a worker where these are declared."""
    return _on_workers(_in_workspaces(list(tasks), world), world)


def _in_workspaces(tasks: list[Task], world: World) -> list[Task]:
    """The first workspace of its project that no other task in flight has."""
    taken = {(task.project, task.workspace) for task in tasks if task.status.in_flight}
    for at, task in enumerate(tasks):
        project = world.projects.get(task.project)
        if not task.status.in_flight or task.workspace is not None or project is None:
            continue
        free = [name for name in project.workspaces or () if (project.name, name) not in taken]
        if free:
            tasks[at] = replace(task, workspace=free[0])
            taken.add((project.name, free[0]))
    return tasks


def _on_workers(tasks: list[Task], world: World) -> list[Task]:
    """The first worker with its labels that has a free slot, else the first with its labels."""
    slots = dict.fromkeys((worker.name for worker in world.workers), 0)
    for task in tasks:
        if task.lease and task.lease.worker in slots:
            slots[task.lease.worker] += 1
    for at, task in enumerate(tasks):
        if task.lease is None or task.lease.worker is not None:
            continue
        fits = [each for each in world.workers if set(task.labels) <= set(each.labels)]
        free = [each for each in fits if each.slots is None or slots[each.name] < each.slots]
        for worker in (free or fits)[:1]:
            slots[worker.name] += 1
            tasks[at] = replace(task, lease=replace(task.lease, worker=worker.name))
    return tasks
