"""Gates: the rules that a lane must pass to start, one file each, asked in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fairlead.model.plan import Hold
from fairlead.planner.gates import budget, caps, cooldown, locks, paused, worker, workspace
from fairlead.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlead.planner.round import Round

#: A gate gives every hold that keeps the lane now; none = the lane passes.
Gate = Callable[[LaneRules, "Round"], Iterator[Hold]]

GATES: tuple[Gate, ...] = (
    paused.check,
    cooldown.check,
    budget.check,
    caps.check,
    locks.check,
    workspace.check,
    worker.check,
)
