"""Admit: which items enter a queue that has no room for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from fairlane.intake.queue_depth import Pressure
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.sync.draft import Draft

_STOPPED = (Status.PARKED, Status.CANCELED)


def latecomers(
    coming: Sequence[Draft], known: Mapping[str, Task], pressure: Pressure, policy: Policy
) -> list[Draft]:
    """Those that must wait for room, in their order. `known`: the tasks that are there already.

    What its source holds, or what needs that, enters only up to the soft limit: so it never keeps
    out, however much of it there is, what could start.
    """
    left, left_for_held = pressure.left(pressure.hard), pressure.left(pressure.soft)
    if left is None or (left >= len(coming) and left_for_held in (None, left)):
        return []
    drafts = {draft.task: draft for draft in coming}
    stuck = {name for name, task in known.items() if task.source_hold or task.status in _STOPPED}
    free: list[str] = []
    held: list[str] = []
    for name in _entry_order(coming, policy):
        if drafts[name].hold or not stuck.isdisjoint(_before(drafts[name])):
            stuck.add(name)
            held.append(name)
        else:
            free.append(name)
    room = left if left_for_held is None else left_for_held
    admitted = {*free[:left], *held[: max(0, room - len(free))]}
    return [draft for draft in coming if draft.task not in admitted]


def _entry_order(coming: Sequence[Draft], policy: Policy) -> list[str]:
    """What others need first; else by priority, where the policy heeds it, and as they come.

    So whatever enters finds there what it needs, and no full queue waits for what cannot enter.
    """
    drafts = list(coming)
    if "priority" in policy.order:
        usual = Task("").priority
        drafts.sort(key=lambda draft: draft.values.get("priority", usual))
    names = dict.fromkeys(draft.task for draft in drafts)
    graph: TopologicalSorter[str] = TopologicalSorter()
    for name in names:
        graph.add(name)
    for draft in drafts:
        graph.add(draft.task, *(name for name in _before(draft) if name in names))
    return list(graph.static_order())


def _before(draft: Draft) -> list[str]:
    """The tasks for which it waits."""
    parent = draft.values.get("parent")
    return [*draft.needs, *([parent] if parent else [])]
