"""What should start now. Pure: the same input gives the same plan, byte for byte."""

from __future__ import annotations

from datetime import datetime

from fairlane.model.instant import Instant, instant
from fairlane.model.plan import Plan
from fairlane.model.snapshot import Snapshot
from fairlane.policy.policy import Policy


def plan(snapshot: Snapshot, policy: Policy, now: datetime | Instant) -> Plan:
    """What to start now: picks in order, reclaims, and a hold for everything that is left."""
    from fairlane.planner import lanes  # much imports a rule of this package, and never plans

    return lanes.plan(snapshot, policy, instant(now))
