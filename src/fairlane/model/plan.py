"""Plan: what to start now, what ends, and why the rest waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from fairlane.model.instant import Instant, show_instant
from fairlane.model.record import NamedTuple, changed, dataclass, field
from fairlane.model.task import LaneKey, Status

if TYPE_CHECKING:
    from fairlane.model.documents.parts import HeldDocument, HoldDocument, RoomDocument
    from fairlane.model.documents.reports import (
        PickDocument,
        PlanDocument,
        ReclaimDocument,
        ScorePartsDocument,
    )

#: Codes of holds that nothing will free by itself.
MISCONFIGURED = frozenset({"cap_zero", "no_worker", "no_label", "unknown_agent"})
#: How many task ids a hold names.
IDS_SHOWN = 5


class Reason(StrEnum):
    """What ended the round."""

    PAUSED = "paused"
    NONE = "none"
    READY = "ready"
    CAPACITY = "capacity"
    BATCH = "batch"
    HELD = "held"


class Hold(NamedTuple):
    """Why something does not start now."""

    gate: str
    code: str
    reason: str
    until: Instant | None = None
    holders: tuple[str, ...] = ()

    @property
    def misconfigured(self) -> bool:
        """Whether neither time nor other work will free it."""
        return self.code in MISCONFIGURED

    def document(self) -> HoldDocument:
        """As every interface shows it."""
        return {
            "gate": self.gate,
            "code": self.code,
            "reason": self.reason,
            "until": _show(self.until),
            "holders": list(self.holders),
        }


class Held(NamedTuple):
    """The tasks that one hold keeps."""

    hold: Hold
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    tasks: tuple[str, ...]  # the first few

    def document(self) -> HeldDocument:
        """As every interface shows it."""
        return {**self.hold.document(), "count": self.count, "tasks": list(self.tasks)}


class ScoreParts(NamedTuple):
    """The terms of a score; they sum to it."""

    kind: int
    age: int
    depth: int
    retries: int  # negative or 0

    @property
    def total(self) -> int:
        """The score."""
        return self.kind + self.age + self.depth + self.retries

    def document(self) -> ScorePartsDocument:
        """As every interface shows it."""
        return {"kind": self.kind, "age": self.age, "depth": self.depth, "retries": self.retries}


class Pick(NamedTuple):
    """One chosen task, its worker and workspace, and the numbers that decided."""

    task: str
    lane: LaneKey
    worker: str
    workspace: str | None
    estimate: int  # tokens reserved for it
    score: ScoreParts
    share: dict[str, object]

    def document(self) -> PickDocument:
        """As every interface shows it."""
        return {
            "task": self.task,
            "project": self.lane.project,
            "kind": self.lane.kind,
            "worker": self.worker,
            "workspace": self.workspace,
            "estimate_tokens": self.estimate,
            "score": self.score.total,
            "score_parts": self.score.document(),
            "share": self.share,
        }


class Reclaim(NamedTuple):
    """A lease that this plan ends because it expired, and the status that follows."""

    task: str
    lease: str
    status: Status

    def document(self) -> ReclaimDocument:
        """As every interface shows it."""
        return {"task": self.task, "lease": self.lease, "status": str(self.status)}


class Room(NamedTuple):
    """Cap `all`, what is in flight, and how many more may start."""

    cap: int | None
    in_flight: int
    free: int | None  # None: no limit

    def document(self) -> RoomDocument:
        """As every interface shows it."""
        return {"cap": self.cap, "in_flight": self.in_flight, "free": self.free}


@dataclass(frozen=True, slots=True)
class Clocks:
    """The share clocks after the round; commit stores them."""

    everyone: int = 0
    projects: dict[str, tuple[int, bool]] = field(default_factory=dict)  # (clock, present)

    def document(self) -> dict[str, object]:
        """Canonical form."""
        rows = {name: list(self.projects[name]) for name in sorted(self.projects)}
        return {"everyone": self.everyone, "projects": rows}


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of one round."""

    now: Instant
    room: Room
    picks: tuple[Pick, ...]
    reclaims: tuple[Reclaim, ...]
    holds: tuple[Held, ...]
    reason: Reason
    wake_at: Instant | None
    clocks: Clocks

    def document(self) -> PlanDocument:
        """As every interface shows it, digests apart."""
        return {
            "now": show_instant(self.now),
            "capacity": self.room.document(),
            "picks": [pick.document() for pick in self.picks],
            "reclaims": [reclaim.document() for reclaim in self.reclaims],
            "holds": [row.document() for row in self.holds],
            "reason": str(self.reason),
            "wake_at": _show(self.wake_at),
        }


class Decided(NamedTuple):
    """A plan in short: without its holds, but with what they come to."""

    plan: Plan  # clocks only where something starts
    held: Mapping[str, int]  # how many tasks each code holds
    holds: frozenset[str]  # gate/code of every hold
    times_free: bool  # whether time frees any of what is held

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight and time frees no hold; a parked task may be due later."""
        return not self.plan.room.in_flight and not self.times_free

    @property
    def waiting(self) -> int:
        """How many tasks are held."""
        return sum(self.held.values())


def decided(plan: Plan) -> Decided:
    """A plan that was made in full, in short."""
    return in_short(plan, [(row.hold, row.count) for row in plan.holds])


def in_short(plan: Plan, holds: Iterable[tuple[Hold, int]]) -> Decided:
    """A plan with these holds, each with how many tasks it keeps."""
    held: dict[str, int] = {}
    gates, times_free = set(), False
    for hold, count in holds:
        held[hold.code] = held.get(hold.code, 0) + count
        gates.add(f"{hold.gate}/{hold.code}")
        times_free = times_free or hold.until is not None
    return Decided(changed(plan, holds=()), held, frozenset(gates), times_free)


def _show(when: Instant | None) -> str | None:
    return None if when is None else show_instant(when)
