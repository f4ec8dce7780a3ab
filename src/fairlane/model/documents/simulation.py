"""Documents of simulations: what each policy makes of the same work. Lengths are in seconds."""

from __future__ import annotations

from typing import TypedDict

from fairlane.model.documents.parts import Answer, Spread90Document, Time


class WaitsDocument(Spread90Document):
    """From ready to the first start; a task that has not started counts with its wait so far."""

    max: float | None


class FlowDocument(TypedDict):
    """What became of tasks; `tasks` are those that arrived."""

    tasks: int
    done: int
    waits: WaitsDocument
    tokens: int
    usd: float


class ProjectFlowDocument(FlowDocument):
    """One project; `lag` is the largest, in tokens/weight."""

    project: str
    weight: int
    share: float
    target: float
    lag: int | None


class KindFlowDocument(FlowDocument):
    kind: str


class LateDocument(TypedDict):
    """Who waited longest, and how many could have started and never did."""

    task: str | None
    seconds: float | None
    never_started: int


class UndoneDocument(TypedDict):
    """An act that was refused when its time came, and why; `add`: work for an archived project."""

    at: Time
    do: str
    why: str


class PolicyFlowDocument(FlowDocument):
    """What one policy makes of the work; `statuses` are those at the end.

    `held` has seconds by code, summed over tasks; `attempts` counts by outcome; `took` is from the
    begin to the end of the last attempt, in seconds; `refused` are tasks that never came in,
    because the queue was full; no other figure has them.
    """

    name: str
    by_project: list[ProjectFlowDocument]
    by_kind: list[KindFlowDocument]
    utilisation: float | None
    ends_per_day: float
    took: float
    refused: int
    attempts: dict[str, int]
    lag: int | None
    bound: int | None
    late: LateDocument
    held: dict[str, float]
    statuses: dict[str, int]
    undone: list[UndoneDocument]


class SimulateAnswer(Answer):
    workload: str
    seed: int
    days: float
    begin: Time
    policies: list[PolicyFlowDocument]
