"""Slots: how many attempts the worker of this machine runs at once."""

from __future__ import annotations

from fairlane.policy.policy import Policy
from fairlane.settings import Settings
from fairlane.store.base import WorkerRow

#: Where neither the settings nor cap `all` say how many.
WITHOUT_CAP = 4


def slots_of(settings: Settings, policy: Policy) -> int:
    """As many as the settings say, else as many as cap `all` lets run."""
    if settings.worker.slots is not None:
        return settings.worker.slots
    cap = policy.caps.get("all")
    return WITHOUT_CAP if cap is None else cap


def slot_limit(settings: Settings, policy: Policy) -> int | None:
    """The same for planning; None where cap `all` is the limit, which a plan may try to raise."""
    if settings.worker.slots is None and policy.caps.get("all") is not None:
        return None
    return slots_of(settings, policy)


def follows_policy(settings: Settings, row: WorkerRow) -> bool:
    """Whether this is the worker of this machine, and the policy gives its slots."""
    rules = settings.worker
    return row.name == rules.name and rules.slots is None and row.slots is not None


def direct_slots(settings: Settings, policy: Policy) -> int:
    """For direct starts, which no cap holds: what cap `all` gives is not below the usual number."""
    slots = slots_of(settings, policy)
    return slots if settings.worker.slots is not None else max(slots, WITHOUT_CAP)
