"""Gates: the rules that a lane must pass to start, one file each, asked in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fairlead.model.plan import Hold
from fairlead.planner.gates import budget, caps, cooldown, locks, paused, worker, workspace
from fairlead.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlead.planner.round import Round

#: A gate gives every hold that keeps the lane now; none = the lane passes. It is asked at every
#: pick, so what passes gets the empty tuple, and only what is held a generator.
Gate = Callable[[LaneRules, "Round"], Iterable[Hold]]

GATES: tuple[Gate, ...] = (
    paused.check,
    cooldown.check,
    budget.check,
    caps.check,
    locks.check,
    workspace.check,
    worker.check,
)
