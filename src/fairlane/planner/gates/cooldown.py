"""A pool that was throttled rests; then one probe starts first, the rest when it proved healthy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlane.lifecycle.backoff import PROVED_AFTER
from fairlane.model.instant import show_instant
from fairlane.model.plan import Hold
from fairlane.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round

CODES: tuple[str, ...] = ("cooldown", "probe")


def concerns(lane: LaneRules, round: Round) -> bool:
    """Whether its pool was throttled and has not proved healthy since."""
    return lane.pool in round.resting


def check(lane: LaneRules, round: Round) -> Iterator[Hold]:
    """Held while its pool cools down, or while as many probes run as the policy allows."""
    pool = round.resting[lane.pool or ""]
    if pool.until is not None and pool.until > round.now:
        cause = f": {pool.cause}" if pool.cause else ""
        hits = f" (throttled {pool.hits} in a row)" if pool.hits > 1 else ""
        text = f"pool {pool.name} cools down until {show_instant(pool.until)}{cause}{hits}"
        yield Hold("cooldown", "cooldown", text, pool.until)
        return
    probes = round.ledger.probes.get(pool.name, [])
    if len(probes) >= round.policy.cooldown.probe:
        text = f"pool {pool.name} is being tried by a probe after its cooldown"
        holders = tuple(task for _, task in probes)
        yield Hold("cooldown", "probe", text, min(probes)[0] + PROVED_AFTER, holders)
