"""Somebody who can run it has a free slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlane.model.plan import Hold
from fairlane.planner.rules import LaneRules

if TYPE_CHECKING:
    from fairlane.planner.round import Round

CODES: tuple[str, ...] = ("no_slot", "no_worker", "no_label", "unknown_agent")


def concerns(lane: LaneRules, round: Round) -> bool:
    """Always: every task runs somewhere."""
    return True


def check(lane: LaneRules, round: Round) -> Iterable[Hold]:
    """Held when its agent is unknown, or no live worker with a free slot has its labels."""
    known = round.snapshot.agents is None
    return () if known and round.workers.has_slot(lane.labels) else _holds(lane, round)


def _holds(lane: LaneRules, round: Round) -> Iterator[Hold]:
    agents = round.snapshot.agents
    if agents is not None and lane.agent is not None and lane.agent not in agents:
        yield Hold("worker", "unknown_agent", f"agent {lane.agent} is not known here")
    workers = round.workers
    if not workers.fitting(lane.labels):
        yield _nobody(lane, round)
    elif not round.ignores_room and not workers.has_slot(lane.labels):
        with_labels = f" with {', '.join(lane.labels)}" if lane.labels else ""
        slots = sum(worker.slots or 0 for worker in workers.fitting(lane.labels))
        text = f"all {slots} slots{with_labels} are busy"
        if slots == 1:
            text = f"the only slot{with_labels} is busy"
        holders = workers.holders(lane.labels) if round.names_holders else ()
        yield Hold("worker", "no_slot", text, None, holders)


def _nobody(lane: LaneRules, round: Round) -> Hold:
    everyone = round.workers.everyone or round.workers.live
    for label in lane.labels:
        if not any(label in worker.labels for worker in everyone):
            return Hold("worker", "no_label", f"no worker has label {label}")
    wanted = ", ".join(lane.labels)
    if any(set(lane.labels) <= set(worker.labels) for worker in everyone):
        return Hold("worker", "no_worker", f"the workers with {wanted} have not been seen lately")
    return Hold("worker", "no_label", f"no worker has all of {wanted}")
