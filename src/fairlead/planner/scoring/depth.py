"""What is deeper in a hierarchy scores more: begun work is finished first."""

from __future__ import annotations

from fairlead.model.lane import LaneKey
from fairlead.policy.policy import Score


def term(lane: LaneKey, rules: Score) -> int:
    """So much a level."""
    return lane.depth * rules.depth_per_level
