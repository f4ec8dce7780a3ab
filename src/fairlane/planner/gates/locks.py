"""One holder per lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlane.model.plan import Hold
from fairlane.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round

CODES: tuple[str, ...] = ("lock", "reserved")


def concerns(lane: LaneRules, round: Round) -> bool:
    """Whether it takes any lock."""
    return bool(lane.locks)


def check(lane: LaneRules, round: Round) -> Iterator[Hold]:
    """Held when another task in flight has one of its locks, or an overdue one waits for it."""
    for lock in lane.locks:
        holder = round.ledger.locks.get(lock)
        if holder is not None:
            yield Hold("locks", "lock", f"{shown(lock)} is held by {holder}", None, (holder,))
            continue
        owner = round.reserved_locks.get(lock)
        if owner is not None and owner.lane is not lane:
            text = f"{shown(lock)} is reserved for {owner.task}, which is overdue"
            yield Hold("locks", "reserved", text, None, (owner.task,))


def shown(lock: str) -> str:
    """A lock as people read it: `serial:group:g+code` is the serial lock of g and code."""
    if not lock.startswith("serial:"):
        return f"lock {lock}"
    return "serial lock " + lock.split(":", 2)[2]
