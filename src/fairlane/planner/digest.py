"""Digests: one name for one input and one answer, whichever planner gave it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlane.model.codec import canonical, encode
from fairlane.model.lane import Lane
from fairlane.model.plan import Plan
from fairlane.model.snapshot import Snapshot
from fairlane.policy.policy import Policy


def digests(snapshot: Snapshot, policy: Policy, plan: Plan) -> dict[str, str]:
    """Of snapshot, policy and plan, over canonical JSON."""
    return {
        "snapshot": digest(canonical(snapshot_document(snapshot))),
        "policy": policy.digest(),
        "plan": digest(plan_bytes(plan)),
    }


def snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot as JSON has it: of a lane its key, its count and its tasks in order.

    Where the two orders of a lane differ, both are there.
    """
    document: dict[str, Any] = encode(replace(snapshot, lanes=()))
    return document | {"lanes": [_lane(lane) for lane in snapshot.lanes]}


def _lane(lane: Lane) -> list[Any]:
    held = [lane.key, lane.count, lane.by_ready]
    return held if lane.by_created == lane.by_ready else [*held, lane.by_created]


def plan_bytes(plan: Plan) -> bytes:
    """A plan as bytes: two plans are the same when these are."""
    return canonical(plan.document() | {"clocks": plan.clocks.document()})


def digest(data: bytes) -> str:
    """The name of what these bytes say."""
    from hashlib import sha256  # not every command needs it

    return sha256(data).hexdigest()
