"""Edges: what an item waits for becomes needs, or a hold where the other one is not here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane.intake.family import cycle_error, find_cycle
from fairlane.model.task import Status, Task
from fairlane.service.sourcing.drafting import Draft
from fairlane.service.sourcing.merging import untouched
from fairlane.store.base import Reading


@dataclass(slots=True)
class Kin:
    """Which item is which task, which are here, and which are over."""

    reading: Reading
    names: Mapping[str, str]  # item -> task
    tasks: Mapping[str, Task]  # those that are known
    closed: frozenset[str]  # items that are over in their source
    others: dict[str, Status] = field(default_factory=dict)  # tasks of other origin


def connect(kin: Kin, drafts: dict[str, Draft]) -> list[tuple[Draft, str]]:
    """Give every draft its needs and its hold; those that can never start come out, with why."""
    out: list[tuple[Draft, str]] = []
    named = {need for draft in drafts.values() for need in draft.item.needs} - kin.names.keys()
    parents = {draft.values["parent"] for draft in drafts.values() if "parent" in draft.values}
    foreign = (named | parents) - set(kin.names.values())  # one of ours is known by its item
    kin.others = kin.reading.statuses(foreign) if foreign else {}
    while True:
        for draft in drafts.values():
            _resolve(kin, draft, drafts)
        wrong = _orphan(kin, drafts) or _around(kin, drafts)
        if wrong is None:
            return out
        out.append(wrong)
        draft = wrong[0]
        if draft.task in kin.tasks:
            draft.settled, draft.needs = True, kin.tasks[draft.task].needs
        else:
            del drafts[draft.task]


def _orphan(kin: Kin, drafts: Mapping[str, Draft]) -> tuple[Draft, str] | None:
    """A new one whose parent is not here."""
    for draft in drafts.values():
        parent = draft.values.get("parent")
        known = parent is None or parent in drafts or parent in kin.tasks or parent in kin.others
        if not known and draft.task not in kin.tasks:
            return draft, f"its parent {parent!r} is not known"
    return None


def _around(kin: Kin, drafts: Mapping[str, Draft]) -> tuple[Draft, str] | None:
    """The first one that would wait for itself."""
    around = find_cycle(_graph(kin, drafts))
    for draft in drafts.values():
        if draft.task in around and not draft.settled:
            return draft, cycle_error(around).message
    return None


def _resolve(kin: Kin, draft: Draft, drafts: Mapping[str, Draft]) -> None:
    needs: list[str] = []
    absent: list[str] = []
    for item in draft.item.needs:
        task = kin.names.get(item)
        if task is None and item in kin.others:
            needs.append(item)
        elif task is not None and (task in drafts or _is_here(kin, item, task)):
            needs.append(task)
        elif item not in kin.closed:
            absent.append(item)
    if not draft.settled:
        draft.needs = tuple(dict.fromkeys(needs))
    missing = f"needs {', '.join(absent)}, which is not imported" if absent else ""
    draft.hold = "; ".join(each for each in (draft.item.blocked, draft.taken, missing) if each)


def _is_here(kin: Kin, item: str, task: str) -> bool:
    """Whether there is a task to wait for; one that was canceled with its item is none."""
    known = kin.tasks.get(task)
    return known is not None and not (item in kin.closed and known.status is Status.CANCELED)


def _graph(kin: Kin, drafts: Mapping[str, Draft]) -> dict[str, dict[str, Any]]:
    """Who waits for whom, as far as a new edge can lead around."""
    graph: dict[str, dict[str, Any]] = {}
    moved = False
    for name, draft in drafts.items():
        task = kin.tasks.get(name)
        if task is None:
            parent = {"parent": draft.values["parent"]} if "parent" in draft.values else {}
            graph[name] = {"needs": draft.needs, **parent}
        elif draft.returns or untouched(task):
            graph[name] = _edges(task) | {"needs": draft.needs}
            moved = moved or draft.needs != task.needs
    if moved:
        _add_store(kin.reading, graph)
    return graph


def _add_store(reading: Reading, graph: dict[str, dict[str, Any]]) -> None:
    """The tasks of the store that can be reached: an edge that moves may lead back through them."""
    left = _ends(graph.values()) - graph.keys()
    while left:
        found = reading.tasks(left)
        graph |= {name: _edges(task) for name, task in found.items()}
        left = _ends(graph[name] for name in found) - graph.keys()


def _ends(edges: Iterable[Mapping[str, Any]]) -> set[str]:
    return {end for each in edges for end in (*each["needs"], each.get("parent")) if end}


def _edges(task: Task) -> dict[str, Any]:
    return {"needs": task.needs, **({"parent": task.parent} if task.parent else {})}
