"""Tasks and attempts in few words, and how they get into a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from fairlane.model.instant import Instant
from fairlane.model.project import Project
from fairlane.model.record import replace
from fairlane.model.task import Attempt, Lane, Status, Task
from fairlane.store.base import Placed, Store, Tally, Writing


def task(name: str, seq: int, **fields: Any) -> Task:
    """A task that was created, and is ready, since the instant of its seq."""
    given = {"created_at": seq, "ready_since": seq} | fields
    return Task(id=name, seq=seq, **given)


def ready(name: str, seq: int, **fields: Any) -> Placed:
    """A task that stands in its lane."""
    return Placed(task(name, seq, **fields))


def waits(name: str, seq: int, code: str, due_at: Instant | None = None, **fields: Any) -> Placed:
    """A task that waits."""
    return Placed(task(name, seq, **fields), code, due_at)


def ended(name: str, seq: int, at: Instant, status: Status = Status.DONE, **fields: Any) -> Placed:
    """A finished task."""
    return Placed(task(name, seq, status=status, ended_at=at, **fields))


def put(store: Store, *tasks: Placed) -> None:
    """Inserts tasks, and their projects where they are new."""
    with store.write() as writing:
        known = writing.table(Project)
        for project in sorted({placed.task.project for placed in tasks} - set(known)):
            writing.put(Project(project))
        writing.insert(tasks)


def save(store: Store, *tasks: Placed) -> None:
    """Saves what has happened to tasks."""
    with store.write() as writing:
        writing.save(tasks)


def change(placed: Placed, **fields: Any) -> Placed:
    """The task in its lane, with other fields."""
    return Placed(replace(placed.task, **fields))


def attempt(of: Placed, fence: int, **fields: Any) -> Attempt:
    """An attempt of a task; `ended_at` comes with an outcome."""
    held = of.task
    given: dict[str, Any] = {
        "lease": f"l{fence}", "task": held.id, "project": held.project, "kind": held.kind,
        "agent": held.agent, "number": fence, "fence": fence, "worker": "w1",
        "leased_at": 100 * fence, "expires_at": 100 * fence + 50,
    }  # fmt: skip
    if fields.get("ended_at") is not None:
        given["outcome"] = "succeeded"
    return Attempt(**(given | fields))


def start(store: Store, placed: Placed, **fields: Any) -> tuple[Placed, Attempt]:
    """Leases a task that is in the store; the task and its open attempt."""
    number = placed.task.attempts + 1
    leased = change(placed, status=Status.LEASED, attempts=number)
    with store.write() as writing:
        fence = writing.number("fence")
        made = attempt(leased, fence, number=number, **fields)
        writing.save([leased])
        writing.put_attempts([made])
    return leased, made


def names(lane: Lane | None, age_from: str = "ready") -> list[str]:
    """The tasks of a lane in their order."""
    assert lane is not None
    return [entry.task for entry in lane.in_order(age_from)]


def ids(rows: Iterable[Placed]) -> list[str]:
    """The ids of tasks."""
    return [placed.task.id for placed in rows]


def end(held: Attempt, at: Instant, outcome: str = "released", **fields: Any) -> Attempt:
    """The attempt as it ended."""
    return replace(held, ended_at=at, outcome=outcome, **fields)


class Undone(Exception):
    """What ends a transaction that is to be undone."""


@contextmanager
def undone(store: Store) -> Iterator[Writing]:
    """A transaction that fails at its end."""
    try:
        with store.write() as writing:
            yield writing
            raise Undone
    except Undone:
        pass


def counted(tallies: Iterable[Tally]) -> dict[tuple[str, str, str, str], int]:
    """Tallies by what they count."""
    counts = {(str(t.status), t.wait, t.project, t.kind): t.count for t in tallies}
    assert all(counts.values())
    return counts
