"""Documents of what the planner decides and what reports count."""

from __future__ import annotations

from typing import TypedDict

from fairlane.model.documents.admin import BudgetDocument, PoolDocument
from fairlane.model.documents.parts import (
    Answer,
    HeldDocument,
    HoldDocument,
    PauseDocument,
    RoomDocument,
    Spread90Document,
    Spread95Document,
    StatusName,
    Time,
)


class CapacityDocument(RoomDocument):
    mode: str


class QueuedDocument(TypedDict):
    """Queued tasks: total = ready + waiting; held is part of ready."""

    total: int
    ready: int
    waiting: int
    held: int
    by_kind: dict[str, int]
    by_project: dict[str, int]


class RunningDocument(TypedDict):
    task: str
    title: str
    project: str
    kind: str
    stop_requested: str
    lease: str
    note: str
    attempt: int
    fence: int
    tokens: int
    estimate_tokens: int
    agent: str | None
    worker: str | None
    workspace: str | None
    leased_at: Time
    expires_at: Time
    status: StatusName
    started_at: Time | None
    usd: float | None
    direct: bool


class WarningDocument(TypedDict):
    code: str
    message: str


class StatusAnswer(Answer):
    now: Time
    paused: list[PauseDocument]
    capacity: CapacityDocument
    queued: QueuedDocument
    parked: int
    running: list[RunningDocument]
    by_hold: dict[str, int]
    holds: list[HeldDocument]
    pools: list[PoolDocument]
    budgets: list[BudgetDocument]
    warnings: list[WarningDocument]
    last_cycle: dict[str, object]
    wake_at: Time | None


class ScorePartsDocument(TypedDict):
    kind: int
    age: int
    depth: int
    retries: int


class ScoreDocument(ScorePartsDocument):
    total: int


class PickDocument(TypedDict):
    task: str
    project: str
    kind: str
    worker: str
    estimate_tokens: int
    score: int
    workspace: str | None
    score_parts: ScorePartsDocument
    share: dict[str, object]


class ReclaimDocument(TypedDict):
    task: str
    lease: str
    status: StatusName


class DigestsDocument(TypedDict):
    snapshot: str
    policy: str
    plan: str


class PlanDocument(TypedDict):
    now: Time
    capacity: RoomDocument
    picks: list[PickDocument]
    reclaims: list[ReclaimDocument]
    holds: list[HeldDocument]
    reason: str
    wake_at: Time | None


class PlanAnswer(Answer, PlanDocument):
    digests: DigestsDocument


class ChangeDocument(TypedDict):
    """A change that would start a task; `apply` holds its values."""

    change: str
    apply: dict[str, object]


class WhyAnswer(Answer):
    task: str
    verdict: str
    status: StatusName
    holds: list[HoldDocument]
    position: int | None
    ahead: list[str]
    score: ScoreDocument | None
    share: dict[str, object] | None
    would_start_if: list[ChangeDocument]
    starts: dict[str, object] | None


class DecisionDocument(TypedDict):
    """A recorded plan in short."""

    picks: list[str]
    reclaims: list[str]
    decision: int
    at: Time
    reason: str
    policy: str
    digests: DigestsDocument


class DecisionsAnswer(Answer):
    decisions: list[DecisionDocument]
    cursor: int | None


class DecisionAnswer(Answer, DecisionDocument):
    plan: dict[str, object]


class DifferenceDocument(TypedDict):
    """A decision that is another one today."""

    decision: int
    differences: list[str]


class ReplayedAnswer(Answer):
    replayed: int
    different: list[DifferenceDocument]


class DoneDocument(TypedDict):
    id: str
    title: str
    project: str
    kind: str
    attempt: int
    tokens: int
    ended_at: Time
    seconds: float
    usd: float | None
    answer: str | None  # the beginning of it


class DoneTasksDocument(TypedDict):
    count: int
    tasks: list[DoneDocument]


class ParkedDocument(TypedDict):
    """A parked task; `new`: since the time that was asked for."""

    id: str
    title: str
    project: str
    reason: str
    parked_at: Time | None
    new: bool


class ParkedTasksDocument(TypedDict):
    count: int
    tasks: list[ParkedDocument]


class FailedDocument(TypedDict):
    id: str
    project: str
    outcome: str
    detail: str
    attempt: int
    ended_at: Time


class PointDocument(TypedDict):
    tokens: int
    starts: int
    completions: int


class UsedDocument(PointDocument):
    project: str
    usd: float


class NeedDocument(TypedDict):
    """Something that needs a person."""

    what: str
    why: str


class SummaryAnswer(Answer):
    since: Time
    now: Time
    done: DoneTasksDocument
    tokens: int
    usd: float
    projects: list[UsedDocument]
    parked: ParkedTasksDocument
    waits: Spread90Document
    attempts: dict[str, int]
    failures: list[FailedDocument]
    in_flight: int
    queued: QueuedDocument
    needs_person: list[NeedDocument]


class ShareDocument(UsedDocument):
    """A project's share against its target; `lag` and `bound` in tokens/weight."""

    share: float
    target: float
    waits: Spread95Document
    durations: Spread95Document
    lag: int | None
    bound: int | None
    weight: int
    behind: str | None


class ThroughputDocument(TypedDict):
    done: int
    per_hour: float


class EstimateDocument(TypedDict):
    project: str
    kind: str
    attempts: int
    estimated: int
    used: int
    agent: str | None
    within: float


class SeriesDocument(TypedDict):
    at: list[Time]
    step_seconds: int
    projects: dict[str, list[PointDocument]]


#: One attempt on a time line.
BarDocument = TypedDict(
    "BarDocument",
    {"task": str, "project": str, "outcome": str, "from": Time, "to": Time, "worker": str | None},
)


class CheckStatDocument(TypedDict):
    """One check: how often it ran, and how often it was the first to fail."""

    project: str
    check: str
    runs: int
    failed: int


class StatsAnswer(Answer):
    since: Time
    now: Time
    projects: list[ShareDocument]
    throughput: ThroughputDocument
    waits: Spread95Document
    durations: Spread95Document
    estimates: list[EstimateDocument]
    checks: list[CheckStatDocument]
    series: SeriesDocument
    timeline: list[BarDocument]
