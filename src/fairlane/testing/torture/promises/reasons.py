"""Every wait has a reason that is true, and nothing is forgotten by a plan."""

from __future__ import annotations

import re
from typing import Any

from fairlane.model.task import Attempt, Status, Task
from fairlane.store.base import Decision
from fairlane.testing.torture.model import Model, facts
from fairlane.testing.torture.promises.base import Commit, Problem, Problems, promise

_FULL = re.compile(r"cap (.+) is full: (\d+) of (\d+) in flight")
#: Gates of which the holders that a hold names are in flight.
_HOLDERS_FLY = ("caps", "locks", "worker", "cooldown")


class Planned:
    """A recorded plan as the model sees it just before it is committed."""

    def __init__(self, model: Model, decision: Decision, plan: dict[str, Any], alone: bool) -> None:
        self.model, self.decision, self.plan, self.alone = model, decision, plan, alone
        self.picked = [pick["task"] for pick in self.plan["picks"]]
        ended = {row["task"] for row in self.plan["reclaims"]}
        #: In flight at the end of the round.
        self.flying = [name for name in model.open if name not in ended] + self.picked


@promise("plan", 6)
def nobody_forgotten(commit: Commit, planned: Planned) -> Problems:
    """A plan picks every queued task or says what holds it, each once."""
    held = sum(row["count"] for row in planned.plan["holds"])
    if planned.alone or held + len(planned.picked) == planned.model.queued:
        return
    counts = f"{len(planned.picked)} were picked, {held} are held"
    yield Problem(f"{counts}, and {planned.model.queued} are queued")


@promise("lease", 7)
def picked_by_a_decision(commit: Commit, scene: object, attempt: Attempt, task: Task) -> Problems:
    """Every start is recorded: a decision of the same transaction picks it."""
    if task.id not in commit.picked:
        yield Problem("it was leased, and no decision of the commit picks it", task.id)


@promise("plan", 6)
def waits_counted(commit: Commit, planned: Planned) -> Problems:
    """What waits is counted under the code of what it waits for."""
    model = planned.model
    told = {row["code"]: row for row in planned.plan["holds"] if row["gate"] == "readiness"}
    for code in sorted(told.keys() | model.waiting.keys()):
        names = sorted(model.waiting.get(code, ()), key=lambda name: model.task(name).seq)
        row = told.get(code, {"count": 0, "tasks": []})
        if (row["count"], row["tasks"]) != (len(names), names[:5]):
            yield Problem(f"{row['count']} are told to wait with {code}, it is {names}")


@promise("plan", 6)
def holds_true(commit: Commit, planned: Planned) -> Problems:
    """What a hold says is true: its holders are in flight, its cap is the policy's, and full."""
    flying = set(planned.flying)
    for row in planned.plan["holds"]:
        away = [name for name in row["holders"] if name not in flying]
        if row["gate"] in _HOLDERS_FLY and row["code"] != "reserved" and away:
            yield Problem(f"{row['reason']!r} names {away[0]}, which is not in flight", away[0])
        if (full := _FULL.fullmatch(row["reason"])) is not None and not planned.alone:
            yield from _full(commit, planned, *full.groups())
        for name in row["tasks"]:
            if planned.model.status_of(name) is not Status.QUEUED:
                yield Problem(f"{row['reason']!r} is said of it, and it is not queued", name)


def _full(commit: Commit, planned: Planned, name: str, count: str, cap: str) -> Problems:
    model = planned.model
    limit = facts.cap_of(name, commit.policy, model.projects)
    there = sum(name in facts.cap_names(model.task(task), model.groups) for task in planned.flying)
    if (int(count), int(cap)) != (there, limit):
        yield Problem(f"cap {name} is told to be full: {count} of {cap}; it is {there} of {limit}")


@promise("plan", 7)
def by_the_policy(commit: Commit, planned: Planned) -> Problems:
    """A plan is made by the policy in force when it is committed."""
    if not planned.alone and planned.decision.policy != commit.policy.digest():
        yield Problem(f"decision {planned.decision.number} was made by another policy")


@promise("plan", 2)
def timers_heeded(commit: Commit, planned: Planned) -> Problems:
    """A round finds nothing waiting whose time has come, and no parked task that may be tried."""
    if planned.alone:
        return
    model, at = planned.model, planned.decision.at
    while model.timers and model.timers[0][0] <= at:
        due_at, _, name = model.timers[0]
        if name in model.tasks and model.tasks[name].due_at == due_at:
            yield Problem(f"its time had come before decision {planned.decision.number}", name)
            return
        _drop_first(model)


def _drop_first(model: Model) -> None:
    """The first timer is no longer that of its task."""
    from heapq import heappop

    heappop(model.timers)
