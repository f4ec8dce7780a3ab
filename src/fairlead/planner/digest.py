"""Digests: one name for one input and one answer, whichever planner gave it."""

from __future__ import annotations

from fairlead.model.codec import canonical, encode
from fairlead.model.plan import Plan
from fairlead.model.snapshot import Snapshot
from fairlead.policy.policy import Policy


def digests(snapshot: Snapshot, policy: Policy, plan: Plan) -> dict[str, str]:
    """Of snapshot, policy and plan, over canonical JSON."""
    return {
        "snapshot": digest(canonical(encode(snapshot))),
        "policy": policy.digest(),
        "plan": digest(plan_bytes(plan)),
    }


def plan_bytes(plan: Plan) -> bytes:
    """A plan as bytes: two plans are the same when these are."""
    return canonical(plan.document() | {"clocks": plan.clocks.document()})


def digest(data: bytes) -> str:
    """The name of what these bytes say."""
    from hashlib import sha256  # not every command needs it

    return sha256(data).hexdigest()
