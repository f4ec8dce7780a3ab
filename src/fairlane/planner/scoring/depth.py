"""What is deeper in a hierarchy scores more: begun work is finished first."""

from __future__ import annotations

from fairlane.model.lane import LaneKey
from fairlane.policy.policy import Score


def term(lane: LaneKey, rules: Score) -> int:
    """So much a level."""
    return lane.depth * rules.depth_per_level
