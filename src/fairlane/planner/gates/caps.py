"""No more are in flight than the caps allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlane.model.plan import Hold
from fairlane.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round

CODES: tuple[str, ...] = ("cap", "cap_zero")


def concerns(lane: LaneRules, round: Round) -> bool:
    """Whether any cap bounds it."""
    return bool(lane.caps)


def check(lane: LaneRules, round: Round) -> Iterable[Hold]:
    """Held when as many are in flight as any cap of its scopes allows."""
    holders = round.ledger.holders
    for scope, limit in lane.caps:
        if len(holders[scope]) >= limit:
            return _holds(lane, round)
    return ()


def _holds(lane: LaneRules, round: Round) -> Iterator[Hold]:
    holders = round.ledger.holders
    for scope, limit in lane.caps:
        taken = holders.get(scope, ())
        if len(taken) < limit or (scope == "all" and round.ignores_room):
            continue
        if limit == 0:
            yield Hold("caps", "cap_zero", f"cap {scope} is 0: none may run")
        else:
            text = f"cap {scope} is full: {len(taken)} of {limit} in flight"
            yield Hold("caps", "cap", text, None, tuple(taken) if round.names_holders else ())
