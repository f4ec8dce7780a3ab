"""Score: the sum of named terms, one file each; higher first."""

from __future__ import annotations

from fairlane.model.instant import Instant
from fairlane.model.lane import LaneKey
from fairlane.model.plan import ScoreParts
from fairlane.planner.scoring import age, depth, kind, retries
from fairlane.policy.policy import Score


def score(lane: LaneKey, since: Instant, rules: Score, now: Instant) -> ScoreParts:
    """The score of a lane's head with its parts."""
    return ScoreParts(
        kind.term(lane, rules),
        age.term(since, rules, now),
        depth.term(lane, rules),
        retries.term(lane, rules),
    )
