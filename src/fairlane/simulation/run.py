"""What a simulation leaves: who arrived, who ran when, what waited and why; all in order."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane.model.instant import Instant
from fairlane.model.record import dataclass, field


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """One attempt, in the order of the leases."""

    task: str
    number: int
    worker: str | None
    leased_at: Instant
    ended_at: Instant | None  # None: it still runs at the end
    outcome: str | None
    tokens: int  # as the policy counts them
    usd: int  # micro-dollars
    gone_at: Instant | None = None  # when its worker vanished with it; the queue learns it later


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task, in the order of arrival."""

    task: str
    project: str
    kind: str
    group: str | None
    arrived_at: Instant
    ready_at: Instant | None  # when it could first start; None: it never could
    started_at: Instant | None  # when its first attempt got its lease
    ended_at: Instant | None  # when it was done or canceled
    status: str  # at the end


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation under one policy; the same world, policy and seed give the same value."""

    policy: str
    seed: int
    begin: Instant
    end: Instant
    tasks: tuple[TaskLine, ...]
    attempts: tuple[AttemptLine, ...]
    slots: tuple[tuple[Instant, int], ...]  # capacity from each instant on
    held: Mapping[str, int]  # code of a hold or wait -> microseconds, summed over tasks
    weights: Mapping[str, int]  # by project
    lag: Mapping[str, int]  # by project: the largest in tokens/weight, while present
    bound: int  # the published bound of `lag` for this run
    overshoot: Mapping[str, int] = field(default_factory=dict)  # budget -> most used beyond it
    late: Mapping[str, int] = field(default_factory=dict)  # by project: the longest wait to start
    undone: tuple[tuple[Instant, str, str], ...] = ()  # acts that were refused: when, what, why
    refused: int = 0  # tasks that the queue had no room for until the end; no `tasks` are of them
