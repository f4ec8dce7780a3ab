"""Score: the sum of named terms, one file each; higher first."""

from __future__ import annotations

from fairlead.model.instant import Instant
from fairlead.model.lane import LaneKey
from fairlead.model.plan import ScoreParts
from fairlead.planner.scoring import age, depth, kind, retries
from fairlead.policy.policy import Score


def score(lane: LaneKey, since: Instant, rules: Score, now: Instant) -> ScoreParts:
    """The score of a lane's head with its parts."""
    return ScoreParts(
        kind.term(lane, rules),
        age.term(since, rules, now),
        depth.term(lane, rules),
        retries.term(lane, rules),
    )
