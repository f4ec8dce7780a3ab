"""Whoever waits longer scores more, up to a limit."""

from __future__ import annotations

from fairlane.model.instant import MINUTE, Instant
from fairlane.policy.policy import Score


def term(since: Instant, rules: Score, now: Instant) -> int:
    """Whole minutes, never negative: a clock that is ahead gives age 0."""
    minutes = (now - since) // MINUTE
    return min(minutes * rules.age_per_minute, rules.age_max) if minutes > 0 else 0


def full_since(rules: Score, now: Instant) -> Instant:
    """Whoever waits since then, or longer, has all that age can give."""
    minutes = -(-rules.age_max // rules.age_per_minute) if rules.age_per_minute else 0
    return now - minutes * MINUTE
