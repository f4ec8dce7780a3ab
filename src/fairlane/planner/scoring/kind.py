"""Each kind of work has a base score."""

from __future__ import annotations

from fairlane.model.lane import LaneKey
from fairlane.policy.policy import Score


def term(lane: LaneKey, rules: Score) -> int:
    """The kind's own number, else that of `*`, else 0."""
    base = rules.kind.get(lane.kind)
    return rules.kind.get("*", 0) if base is None else base
