"""What has failed scores less, down to a limit; a new task gets neither bonus nor penalty."""

from __future__ import annotations

from fairlane.model.lane import LaneKey
from fairlane.policy.policy import Score


def term(lane: LaneKey, rules: Score) -> int:
    """Negative or 0."""
    return -min(lane.failures * rules.retry_penalty, rules.retry_penalty_max)
