"""A world of which everything is written down: arrivals, fates, workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlane.engine.context import Context
from fairlane.model.instant import DAY, SECOND, Instant, Micros
from fairlane.model.task import Task
from fairlane.policy.policy import Policy
from fairlane.service import projects
from fairlane.simulation.provider import Limits
from fairlane.simulation.run import AttemptLine, Run
from fairlane.simulation.world import Act, Arrival, Fate, Shift

BEGIN: Instant = 20_000 * DAY


def arrival(after: Micros, *records: Mapping[str, Any]) -> Arrival:
    """Tasks that arrive so long after the begin, of the simulated agent."""
    rows = [{"agent": "demo", "prompt": str(row["id"]), **row} for row in records]
    return Arrival(BEGIN + after, tuple(rows))


def shift(after: int, worker: str, slots: int | None, **more: Any) -> Shift:
    """A worker comes or goes so many seconds after the begin."""
    return Shift(BEGIN + after * SECOND, worker, slots, **more)


def act(after: int, operation: str, **arguments: object) -> Act:
    """A person does something so many seconds after the begin."""
    return Act(BEGIN + after * SECOND, operation, arguments)


@dataclass
class FixedWorld:
    """`fates`: of a task, one for each attempt; after those, and for other tasks, the `usual`."""

    come: Sequence[Arrival] = ()
    fates: Mapping[str, Sequence[Fate]] = field(default_factory=dict)
    usual: Fate = field(default_factory=Fate)
    weights: Mapping[str, int] = field(default_factory=dict)
    crew: Sequence[Shift] = ()
    people: Sequence[Act] = ()
    limits: Mapping[str, Limits] = field(default_factory=dict)
    begin: Instant = BEGIN
    days: int | None = None

    def prepare(self, context: Context) -> None:
        for name, weight in self.weights.items():
            projects.add_project(context, name, {"weight": weight})

    def arrivals(self, seed: int) -> Iterable[Arrival]:
        return self.come

    def shifts(self) -> Iterable[Shift]:
        return self.crew

    def acts(self) -> Iterable[Act]:
        return self.people

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        fates = self.fates.get(task.id, ())
        return fates[attempt - 1] if attempt <= len(fates) else self.usual


def policy(**keys: object) -> Policy:
    """The preset `balanced` with other values: `caps__all=2`."""
    given = {name.replace("__", "."): value for name, value in keys.items()}
    return Policy.preset("balanced", {"retry.jitter": 0} | given)


def times(run: Run, *tasks: str) -> list[tuple[str, Micros, Micros | None]]:
    """Task, start and end of each attempt, by their leases, since the begin of the run."""
    return [
        (line.task, line.leased_at - run.begin, since(run, line))
        for line in run.attempts
        if not tasks or line.task in tasks
    ]


def since(run: Run, line: AttemptLine) -> Micros | None:
    return None if line.ended_at is None else line.ended_at - run.begin


def outcomes(run: Run, task: str) -> list[str | None]:
    """How the attempts of a task ended."""
    return [line.outcome for line in run.attempts if line.task == task]
