"""Runs made by hand: a few tasks whose every figure can be told by looking."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlane.model.instant import DAY, MINUTE, SECOND
from fairlane.simulation.run import AttemptLine, Run, TaskLine

#: A Monday at midnight.
BEGIN = 1_800_230_400 * SECOND - 4 * DAY


def minute(number: float) -> int:
    """An instant so many minutes after the begin."""
    return BEGIN + int(number * MINUTE)


def task(name: str, project: str = "web", **values: Any) -> TaskLine:
    """A task that arrives at once, starts after one minute and is done after eleven."""
    line = TaskLine(
        name, project, "code", None, minute(0), minute(0), minute(1), minute(11), "done"
    )
    return replace(line, **values)


def attempt(name: str, **values: Any) -> AttemptLine:
    """The attempt of such a task: 1,000 tokens for a dollar."""
    line = AttemptLine(name, 1, "local", minute(1), minute(11), "succeeded", 1000, 1_000_000)
    return replace(line, **values)


def run(
    tasks: tuple[TaskLine, ...] = (), attempts: tuple[AttemptLine, ...] = (), **values: Any
) -> Run:
    """A run of twenty minutes with two slots."""
    projects = sorted({line.project for line in tasks})
    line = Run(
        policy="balanced",
        seed=1,
        begin=minute(0),
        end=minute(20),
        tasks=tasks,
        attempts=attempts,
        slots=((minute(0), 2),),
        held={},
        weights=dict.fromkeys(projects, 1),
        lag={},
        bound=0,
    )
    return replace(line, **values)


def two_projects(**values: Any) -> Run:
    """Two tasks of `web` one after the other, one of `api` beside them, one that never starts."""
    made = run(
        (
            task("a"),
            task("b", started_at=minute(11), ended_at=minute(16)),
            task("c", "api", kind="review", arrived_at=minute(2), ready_at=minute(2),
                 started_at=minute(2), ended_at=minute(4)),
            task("d", "api", arrived_at=minute(5), ready_at=minute(5), started_at=None,
                 ended_at=None, status="queued"),
        ),
        (
            attempt("a"),
            attempt("c", leased_at=minute(2), ended_at=minute(4), tokens=500, usd=250_000),
            attempt("b", leased_at=minute(11), ended_at=minute(16), tokens=500, usd=0),
        ),
        weights={"web": 3, "api": 1},
        held={"cap": 30 * MINUTE, "needs": 5 * SECOND, "behind": 0},
        lag={"web": 40, "api": 70},
        bound=900,
    )  # fmt: skip
    return replace(made, **values)
