"""Decisions: every plan that did something, with what it was made from, to be replayed."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, TypedDict

from fairlane.engine.context import Context
from fairlane.engine.records.recording import Recording, size_of
from fairlane.engine.records.replaying import Damaged, Replay, every
from fairlane.engine.records.seen import Touched
from fairlane.engine.snapshot import PlannedRound
from fairlane.model.errors import NotFound
from fairlane.model.event import Event
from fairlane.model.instant import DAY, show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import PolicyText
from fairlane.model.record import canonical
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

__all__ = [
    "Replay", "Touched", "compact", "compact_if_due", "listing", "record", "replay", "replay_after",
    "show",
]  # fmt: skip
#: Most bytes that records take together.
BYTES_MAX = 64 * 1024 * 1024
#: The chain of rounds over the whole queue.
WHOLE = "whole"
#: How many times records are counted anew until then: so many parts go one by one.
PARTS = 16


class _Kept(TypedDict, total=False):
    """What every handle knows of the records."""

    holds: list[str]  # of the last one
    sizes: list[list[int]]  # [number, bytes of chains that began from it on]; the oldest first
    alone: bool  # the last one is of some tasks only


def record(
    context: Context, tx: Writing, planned: PlannedRound, touched: Touched | None = None
) -> int | None:
    """Keep a plan that picked or reclaimed something, or changed the set of holds.

    `touched`: what may differ from the snapshot of the call before; None: anything.
    """
    plan, policy = planned.plan, planned.policy
    recording = context.recordings.setdefault("alone" if planned.alone else WHOLE, Recording())
    for kind, each in context.recordings.items():
        each.hear(touched if kind == WHOLE else None)
    holds = sorted({f"{held.hold.gate}/{held.hold.code}" for held in plan.holds})
    last: _Kept = tx.value("decision") or _Kept()
    if not plan.picks and not plan.reclaims and last.get("holds") == holds:
        return None
    if planned.alone:
        tx.put(PolicyText(policy.digest(), canonical(policy.document()).decode()))
    else:
        remember_policy(tx, policy)
    sizes, oldest = _bounded(last.get("sizes", []))
    decision = recording.next(tx, planned, tx.number("decision"), oldest)
    tx.put_decision(decision, oldest)
    _count(sizes, decision)
    tx.put_value("decision", {"holds": holds, "sizes": sizes, "alone": planned.alone})
    return decision.number


def _bounded(sizes: list[list[int]]) -> tuple[list[list[int]], int]:
    """The sizes to keep, and the first number to keep; 0: all of them."""
    kept = list(sizes)
    while len(kept) > 1 and sum(size for _, size in kept) > BYTES_MAX:
        del kept[0]
    return kept, kept[0][0] if len(kept) < len(sizes) else 0


def _count(sizes: list[list[int]], decision: Decision) -> None:
    """Add a record to what is known; a chain counts where its full record does."""
    if not sizes or (decision.base == decision.number and sizes[-1][1] >= BYTES_MAX // PARTS):
        sizes.append([decision.number, 0])
    part = max(bisect(sizes, decision.base, key=itemgetter(0)) - 1, 0)
    sizes[part][1] += size_of(decision)


def remember_policy(tx: Writing, policy: Policy) -> None:
    """Keep the text of a policy once, and that it is the one in force."""
    digest = policy.digest()
    if tx.value("policy") != digest:
        tx.put(PolicyText(digest, canonical(policy.document()).decode()))
        tx.put_value("policy", digest)


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
        plan, digests = again.plan(reading, decision), again.digests(reading, decision)
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
    for row in reading.decisions(number - 1, 1):
        if row.number == number:
            return row
    raise NotFound(f"no decision {number}", "`fairlane replay --list` names what is kept.")


#: How often it is done by itself.
EVERY = DAY


def compact(context: Context) -> dict[str, object]:
    """Finished tasks become tombstones; old events, decisions and minutes of usage are folded."""
    with context.store.write() as tx:
        policy, now = context.policy(), context.now()
        before = now - policy.history.keep
        counts = tx.compact(before)
        tx.put_value("compacted_at", now)
        if any(counts.values()):
            tx.log([Event(0, now, "compacted", data=counts)])
    return {"schema": SCHEMA, "before": show_instant(before), **counts}


def compact_if_due(context: Context) -> bool:
    """Runs at most once a day, in whichever process gets to it first; whether it did."""
    with context.store.read() as reading:
        last = reading.value("compacted_at")
    if last is None:
        with context.store.write() as tx:
            tx.put_value("compacted_at", context.now())
    elif context.now() - last >= EVERY:
        compact(context)
        return True
    return False
