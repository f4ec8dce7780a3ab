"""Backpressure: how deep the queue is, when that is worth a warning, and when it is too deep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from fairlane.model.instant import Instant
from fairlane.model.task import Status
from fairlane.policy.policy import Policy
from fairlane.store.base import Reading

_IN_FLIGHT = (Status.LEASED, Status.RUNNING)


@dataclass(slots=True)
class Pressure:
    """The queue as one call finds it, and as it grows with each task that is added."""

    soft: int | None
    hard: int | None
    room: int | None  # that is free now; None: no limit
    by_kind: Counter[str] = field(default_factory=Counter)  # queued tasks of every sort

    @property
    def depth(self) -> int:
        """Queued tasks of every sort, less the room that is free now."""
        return 0 if self.room is None else max(0, self.by_kind.total() - self.room)

    def enter(self, kind: str) -> str:
        """One more; the warning that it deserves, if any."""
        self.by_kind[kind] += 1
        if self.soft is None or self.depth < self.soft:
            return ""
        return f"the queue is {self.depth} deep (soft limit {self.soft}): {self.told()}"

    def too_deep(self) -> str:
        """Why everything is deferred, if it is."""
        if self.hard is None or self.depth <= self.hard:
            return ""
        return f"the queue would be {self.depth} deep (hard limit {self.hard}): {self.told()}"

    def told(self) -> str:
        """The depth by kind, in words."""
        return ", ".join(f"{kind} {count}" for kind, count in sorted(self.by_kind.items()))


def measure(reading: Reading, policy: Policy, slots: int, now: Instant) -> Pressure | None:
    """What the queue weighs now; None: nothing limits it."""
    soft, hard = policy.backpressure_limits()
    if soft is None and hard is None:
        return None
    tallies = reading.tallies()
    queued: Counter[str] = Counter()
    for tally in tallies:
        if tally.status is Status.QUEUED:
            queued[tally.kind] += tally.count
    in_flight = sum(tally.count for tally in tallies if tally.status in _IN_FLIGHT)
    cap = policy.caps.get("all")
    bounds = [_free_slots(reading, policy, slots, in_flight, now)]
    if cap is not None:
        bounds.append(cap - in_flight)
    return Pressure(soft, hard, _least(bounds), queued)


def _free_slots(
    reading: Reading, policy: Policy, slots: int, in_flight: int, now: Instant
) -> int | None:
    """Free slots of the workers that live; with none, of this machine's, as planning assumes."""
    live = [each for each in reading.workers() if now - each.seen_at < policy.lease.ttl]
    if not live:
        return slots - in_flight
    if any(each.slots is None for each in live):
        return None
    taken = Counter(task.lease.worker for task in reading.in_flight() if task.lease)
    return sum(max(0, (each.slots or 0) - taken[each.name]) for each in live)


def _least(bounds: Iterable[int | None]) -> int | None:
    least = min((bound for bound in bounds if bound is not None), default=None)
    return None if least is None else max(0, least)
