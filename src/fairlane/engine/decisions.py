"""Decisions: every plan that did something, with what it was made from, to be replayed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from fairlane.engine.context import Context
from fairlane.engine.look.planned import PlannedRound
from fairlane.engine.records.recording import Recording, one, size_of
from fairlane.engine.records.replaying import Damaged, Replay, every
from fairlane.model.codec import canonical
from fairlane.model.errors import NotFound
from fairlane.model.instant import show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import PolicyText
from fairlane.policy.policy import Policy
from fairlane.store.base import Decision, Reading, Writing

if TYPE_CHECKING:
    from fairlane.model.documents.reports import (
        DecisionAnswer,
        DecisionDocument,
        DecisionsAnswer,
        DifferenceDocument,
        ReplayedAnswer,
    )

__all__ = ["Replay", "listing", "record", "replay", "replay_after", "show"]
#: After so many records every handle begins a new chain, with a full record.
FULL_EVERY = 256
#: Most bytes that records take together.
BYTES_MAX = 64 * 1024 * 1024
#: Bytes of records that are counted together, and dropped together.
PART = BYTES_MAX // 16
#: The chain of rounds over the whole queue.
WHOLE = "whole"


class _Last(TypedDict, total=False):
    """What the next record must know of those before it, whoever wrote them."""

    base: int
    count: int  # of records with this base
    holds: list[str]
    sizes: list[list[int]]  # [a base, bytes of the records from there to the next row]
    alone: bool  # of some tasks only


def record(context: Context, tx: Writing, planned: PlannedRound) -> int | None:
    """Keep a plan that picked or reclaimed something, or changed the set of holds."""
    short, policy = planned.decided.plan, planned.policy
    recording = context.recordings.setdefault("alone" if planned.alone else WHOLE, Recording())
    holds = sorted(planned.decided.holds)
    last: _Last = tx.value("decision") or _Last()
    if not short.picks and not short.reclaims and last.get("holds") == holds:
        return None
    if planned.alone:
        tx.put(PolicyText(policy.digest(), canonical(policy.document()).decode()))
    else:
        remember_policy(tx, policy)
    number, count = tx.number("decision"), last.get("count", 0)
    base, sizes = last.get("base", number), last.get("sizes", [])
    if count >= FULL_EVERY:
        base = number
    if base == number:
        count = 0
        if not sizes or sizes[-1][1] >= PART:
            sizes.append([number, 0])
    decision = recording.next(tx, planned, number, base)
    sizes[-1][1] += size_of(decision)
    oldest = 0
    while len(sizes) > 1 and sum(size for _, size in sizes) > BYTES_MAX:
        del sizes[0]
        oldest = sizes[0][0]
    tx.put_decision(decision, oldest)
    last = {"base": base, "count": count + 1, "holds": holds, "sizes": sizes}
    tx.put_value("decision", {**last, "alone": True} if planned.alone else last)
    return number


def remember_policy(tx: Writing, policy: Policy) -> None:
    """Keep the text of a policy once, and that it is the one in force."""
    digest = policy.digest()
    if tx.value("policy") != digest:
        tx.put(PolicyText(digest, canonical(policy.document()).decode()))
        tx.put_value("policy", digest)


def start_anew(tx: Writing) -> None:
    """The next decision is full: what came before may be gone."""
    last = tx.value("decision")
    if last:
        last.pop("base", None)
        tx.put_value("decision", last)


def anew_if_dropped(tx: Writing) -> None:
    """The next decision is full if the one that others build on is gone."""
    base = (tx.value("decision") or {}).get("base")
    if base is not None and one(tx, base) is None:
        start_anew(tx)


def listing(context: Context, cursor: int = 0, limit: int = 100) -> DecisionsAnswer:
    """Recorded plans in short."""
    again = Replay()
    with context.store.read() as reading:
        rows = [_short(again, reading, row) for row in reading.decisions(cursor, limit)]
    following = rows[-1]["decision"] if len(rows) == limit else None
    return {"schema": SCHEMA, "decisions": rows, "cursor": following}


def show(context: Context, number: int) -> DecisionAnswer:
    """One recorded plan, whole."""
    again = Replay()
    with context.store.read() as reading:
        decision = _one(reading, number)
        plan = again.plan(reading, decision)
        return {"schema": SCHEMA, **_short(again, reading, decision), "plan": plan}


def replay(context: Context, number: int | None = None, planner: str = "lanes") -> ReplayedAnswer:
    """Plan again from the record, of one or of all; every difference is named."""
    if number is None:
        return replay_after(context, 0, planner)
    with context.store.read() as reading:
        return _replayed(reading, [_one(reading, number)], planner)


def replay_after(context: Context, number: int, planner: str = "lanes") -> ReplayedAnswer:
    """The same of all decisions after one."""
    with context.store.read() as reading:
        return _replayed(reading, every(reading, number), planner)


def _replayed(reading: Reading, wanted: Iterable[Decision], planner: str) -> ReplayedAnswer:
    different: list[DifferenceDocument] = []
    again, count = Replay(), 0
    for decision in wanted:
        count += 1
        if differences := again.differences(reading, decision, planner):
            different.append({"decision": decision.number, "differences": differences})
    return {"schema": SCHEMA, "replayed": count, "different": different}


def _short(again: Replay, reading: Reading, decision: Decision) -> DecisionDocument:
    """In short, though its record may be damaged, or one that it builds on."""
    try:
        plan, digests = again.recorded(reading, decision), again.digests(reading, decision)
    except Damaged:
        plan = {"picks": [], "reclaims": [], "reason": "damaged"}
        digests = {"snapshot": "", "policy": decision.policy, "plan": ""}
    return {
        "decision": decision.number,
        "at": show_instant(decision.at),
        "picks": [pick["task"] for pick in plan["picks"]],
        "reclaims": [reclaim["task"] for reclaim in plan["reclaims"]],
        "reason": plan["reason"],
        "policy": decision.policy,
        "digests": digests,
    }


def _one(reading: Reading, number: int) -> Decision:
    decision = one(reading, number)
    if decision is None:
        raise NotFound(f"no decision {number}", "`fairlane replay --list` names what is kept.")
    return decision
