"""After the faults stop: everything that can end has ended, and the rest waits for a person."""

from __future__ import annotations

from typing import NamedTuple

from fairlane.model.instant import Instant, show_instant
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.testing.torture.model import Model, places
from fairlane.testing.torture.promises import gates
from fairlane.testing.torture.promises.base import Problem, Problems, promise
from fairlane.testing.torture.promises.gates import Scene
from fairlane.testing.torture.promises.holders import Ground

#: What a waiting task waits for that only a person, or the world, ends.
BY_A_PERSON = ("artifact", "source", "upstream", "paused")


class Rest(NamedTuple):
    """How things stand once it is quiet: the rules, the time, who still asks for work."""

    model: Model
    policy: Policy
    now: Instant
    workers: tuple[str, ...]
    agents: frozenset[str] | None
    ground: Ground | None = None


@promise("end", 2)
def everything_ends(rest: Rest) -> Problems:
    """Once it is quiet, each task is done, parked, canceled, or waits for what a person must do."""
    for attempt, task in rest.model.flying():
        yield Problem(f"lease {attempt.lease} is still open", task.id)
    for placed in rest.model.tasks.values():
        task, wait, due_at = placed
        if task.status is Status.PARKED and due_at is not None and due_at <= rest.now:
            yield Problem(f"it was to be tried again at {show_instant(due_at)}", task.id)
        elif task.status is Status.QUEUED and (wrong := _not_waiting(rest, task, wait, due_at)):
            yield Problem(wrong, task.id)


def _not_waiting(rest: Rest, task: Task, wait: str, due_at: Instant | None) -> str:
    """Why nothing keeps a queued task from starting; empty: something does."""
    if wait in ("needs", "parent"):
        before = {*task.needs, task.parent} - {None}
        alive = any(rest.model.status_of(name) in places.ALIVE for name in before if name)
        return "" if alive else f"it waits with code {wait}, and nothing of that is alive"
    if wait in ("backoff", "not_before"):
        later = due_at is not None and due_at > rest.now
        return "" if later else f"it waits with code {wait}, and its time has come"
    if wait == "artifact" and rest.ground is not None and not rest.ground.missing(task):
        return "it waits for artifacts, and all of them are there"
    if wait:
        return "" if wait in BY_A_PERSON else f"it waits with code {wait}"
    scene = Scene(rest.model, rest.policy, rest.now, [], agents=rest.agents)
    held = [gates.hold_of(scene._replace(worker=worker), task) for worker in rest.workers]
    return "" if all(held) else "nothing holds it, and it has not started"
