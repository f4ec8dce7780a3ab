"""Admit: which items enter a queue that has no room for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter

from fairlane.model.task import Task
from fairlane.policy.policy import Policy
from fairlane.service.sync.draft import Draft


def latecomers(coming: Sequence[Draft], left: int | None, policy: Policy) -> list[Draft]:
    """Those that must wait when only so many may enter, in their order."""
    if left is None or left >= len(coming):
        return []
    late = set(_entry_order(coming, policy)[left:])
    return [draft for draft in coming if draft.task in late]


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
        before = (*draft.needs, draft.values.get("parent"))
        graph.add(draft.task, *(name for name in before if name in names))
    return list(graph.static_order())
