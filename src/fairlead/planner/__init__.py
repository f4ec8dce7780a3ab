"""What should start now. Pure: the same input gives the same plan, byte for byte."""

from __future__ import annotations

from datetime import datetime

from fairlead.model.instant import Instant, instant
from fairlead.model.plan import Plan
from fairlead.model.snapshot import Snapshot
from fairlead.planner import lanes
from fairlead.policy.policy import Policy


def plan(snapshot: Snapshot, policy: Policy, now: datetime | Instant) -> Plan:
    """What to start now: picks in order, reclaims, and a hold for everything that is left."""
    return lanes.plan(snapshot, policy, instant(now))
