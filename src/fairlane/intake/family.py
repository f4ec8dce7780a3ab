"""Family: what new tasks need, whose children they are, and how deep they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fairlane.model.errors import FairlaneError, Refused, did_you_mean
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.store.base import Reading

#: New tasks by id, with their values.
Drafts = Mapping[str, dict[str, Any]]


class Unfit(Exception):
    """A refusal, and the new task that it is about."""

    def __init__(self, task: str, error: FairlaneError) -> None:
        super().__init__(error.message)
        self.task, self.error = task, error


def relate(reading: Reading, policy: Policy, drafts: Drafts) -> dict[str, Status]:
    """Check what new tasks name, and give them their depth; the statuses of all they name."""
    kin = {task: each for task, each in drafts.items() if "needs" in each or "parent" in each}
    if not kin:
        return {}
    named = {each for draft in kin.values() for each in relatives(draft)}
    statuses = reading.statuses(named - drafts.keys())
    for task, draft in kin.items():
        for each in relatives(draft):
            if each not in statuses and each not in drafts:
                raise Unfit(task, _missing(task, each, drafts))
    around = find_cycle(kin)  # no task waits for itself; only new ones can
    if around:
        raise Unfit(around[-1], cycle_error(around))
    parents = {draft["parent"] for draft in kin.values() if "parent" in draft}
    if parents:
        known = reading.tasks(parents - drafts.keys())
        _set_depths(kin, drafts, known)
        _check_limits(reading, policy, drafts, known)
    return statuses | {each: Status.QUEUED for each in named if each in drafts}


def relatives(draft: Mapping[str, Any]) -> Iterator[str]:
    """Everything that a task waits for by name."""
    yield from draft.get("needs", ())
    if "parent" in draft:
        yield draft["parent"]


def _missing(task: str, named: str, drafts: Drafts) -> FairlaneError:
    near = did_you_mean(named, drafts)
    hint = near if near.startswith("Did") else "Add it first, or take it out."
    message = f"{task} needs {named!r}, which is not known"
    if drafts[task].get("parent") == named:
        message = f"the parent of {task}, {named!r}, is not known"
    return Refused(message, hint, code="unknown_task")


def find_cycle(kin: Drafts) -> list[str]:
    """Tasks that wait for themselves, in the order of the way; nothing if there are none."""
    finished: set[str] = set()
    for start in kin:
        if start in finished:
            continue
        path = {start: relatives(kin[start])}
        while path:
            here = next(reversed(path))
            for each in path[here]:
                if each in path:
                    names = list(path)
                    return names[names.index(each) :]
                if each in kin and each not in finished:
                    path[each] = relatives(kin[each])
                    break
            else:
                finished.add(here)
                del path[here]
    return []


def cycle_error(around: list[str]) -> FairlaneError:
    """The way around, and what to do."""
    way = " → ".join((*around, around[0]))
    return Refused(f"a cycle: {way}", "Take one need or parent out.", code="cycle")


def _set_depths(kin: Drafts, drafts: Drafts, known: Mapping[str, Task]) -> None:
    """Depth is the number of ancestors."""
    for task in kin:
        line: list[str] = []
        here = task
        while here in drafts and "depth" not in drafts[here]:
            line.append(here)
            here = drafts[here].get("parent", "")
        depth = -1
        if here in drafts:
            depth = drafts[here]["depth"]
        elif here:
            depth = known[here].depth
        for each in reversed(line):
            depth += 1
            drafts[each]["depth"] = depth


def _check_limits(
    reading: Reading, policy: Policy, drafts: Drafts, known: Mapping[str, Task]
) -> None:
    """What an attempt may add: so many children, so deep."""
    flying = {name for name, task in known.items() if task.status.in_flight}
    if not flying:
        return
    children: Counter[str] = Counter()
    for task, draft in drafts.items():
        if _top(draft, drafts) not in flying:
            continue
        if draft["depth"] > policy.limits.depth:
            text = f"{task} would be {draft['depth']} deep (limits.depth is {policy.limits.depth})"
            raise Unfit(task, Refused(text, "Add it to an ancestor.", code="limit"))
        parent = draft["parent"]
        if not children[parent] and parent in known:
            children[parent] = reading.children(parent)
        children[parent] += 1
        most = policy.limits.children
        if children[parent] > most:
            text = f"an attempt of {parent} may add {most} children (limits.children)"
            raise Unfit(task, Refused(text, "Let it finish, or raise the limit.", code="limit"))


def _top(draft: dict[str, Any], drafts: Drafts) -> str:
    """The first ancestor that is not new."""
    parent = draft.get("parent", "")
    while parent in drafts:
        parent = drafts[parent].get("parent", "")
    return str(parent)
