"""Gates: the rules that a lane must pass to start, one file each, asked in this order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from fairlane.model.plan import Hold
from fairlane.planner.gates import budget, caps, cooldown, locks, paused, worker, workspace
from fairlane.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round


class Gate(Protocol):
    """A module with these two functions; its name and its codes are in every hold."""

    __name__: str
    CODES: tuple[str, ...]

    def concerns(self, lane: LaneRules, round: Round) -> bool:
        """Whether it may hold this lane at all; asked once a round, False is final."""

    def check(self, lane: LaneRules, round: Round) -> Iterable[Hold]:
        """Every hold that keeps the lane now; none = the lane passes. Asked at every pick."""


GATES: tuple[Gate, ...] = (paused, cooldown, budget, caps, locks, workspace, worker)
#: What can hold a task, by gate and by code.
HOLDS = frozenset(
    word for gate in GATES for word in (gate.__name__.rpartition(".")[2], *gate.CODES)
)
