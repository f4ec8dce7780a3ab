"""A plan out of its document: what a server told, as the planner says it."""

from __future__ import annotations

from typing import Any

from fairlane.model.instant import parse_instant
from fairlane.model.lane import LaneKey
from fairlane.model.plan import (
    Clocks,
    Held,
    Hold,
    Pick,
    Plan,
    Reason,
    Reclaim,
    Room,
    ScoreParts,
)
from fairlane.model.task import Status


def plan_told(document: dict[str, Any]) -> Plan:
    """The plan, as far as its document tells it."""
    woken = document["wake_at"]
    room = document["capacity"]
    return Plan(
        now=parse_instant(document["now"]),
        room=Room(room["cap"], room["in_flight"], room["free"]),
        picks=tuple(_pick(each) for each in document["picks"]),
        reclaims=tuple(
            Reclaim(each["task"], each["lease"], Status(each["status"]))
            for each in document["reclaims"]
        ),
        holds=tuple(
            Held(hold_told(each), each["count"], tuple(each["tasks"])) for each in document["holds"]
        ),
        reason=Reason(document["reason"]),
        wake_at=None if woken is None else parse_instant(woken),
        clocks=Clocks(),
    )


def hold_told(told: dict[str, Any]) -> Hold:
    """A hold out of its document."""
    until = None if told["until"] is None else parse_instant(told["until"])
    return Hold(told["gate"], told["code"], told["reason"], until, tuple(told["holders"]))


def _pick(told: dict[str, Any]) -> Pick:
    parts = told["score_parts"]
    return Pick(
        told["task"],
        LaneKey(project=told["project"], kind=told["kind"]),
        told["worker"],
        told["workspace"],
        told["estimate_tokens"],
        ScoreParts(parts["kind"], parts["age"], parts["depth"], parts["retries"]),
        told["share"],
    )
