"""Decisions: every plan that did something, with what it was made from, to be replayed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

from fairlane.engine.context import Context, parse_recorded
from fairlane.engine.look.planned import PlannedRound
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.model.event import Event
from fairlane.model.instant import DAY, show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import PolicyText
from fairlane.model.record import canonical, decode, digest
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Entry, Lane, LaneKey, lane_key
from fairlane.planner import lanes, reference
from fairlane.planner.conclude import plan_bytes, snapshot_document
from fairlane.policy.policy import Policy
from fairlane.store.base import Decision, Reading, Writing

if TYPE_CHECKING:
    from fairlane.model.documents.reports import (
        DecisionAnswer,
        DecisionDocument,
        DecisionsAnswer,
        DifferenceDocument,
        DigestsDocument,
        ReplayedAnswer,
    )


#: Grows when the same input may give another plan.
PLANNER_VERSION = 1
#: What reading a damaged record can raise.
_DAMAGE = (
    zlib.error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
    Invalid,
)  # fmt: skip
#: All lanes are recorded this often; between, only those that changed since.
FULL_EVERY = 256
#: Most bytes that records take together.
BYTES_MAX = 64 * 1024 * 1024
#: Documents with fewer bytes are recorded as they are.
SHORT = 1024
_PAGE = 200


class _Last(TypedDict, total=False):
    """What the next record must know of those before it."""

    base: int
    version: int
    count: int  # of records that refer to the base
    age_from: str
    window: int
    holds: list[str]
    sizes: list[list[int]]  # (base, bytes of all records that refer to it)


def record(tx: Writing, planned: PlannedRound) -> int | None:
    """Keep a plan that picked or reclaimed something, or changed the set of holds."""
    short, policy = planned.decided.plan, planned.policy
    holds = sorted(planned.decided.holds)
    last: _Last = tx.value("decision") or _Last()
    if not short.picks and not short.reclaims and last.get("holds") == holds:
        return None
    plan = planned.plan
    number = tx.number("decision")
    age_from = policy.score.age_from
    changed = None
    if not planned.alone and not _stale(last, planned, age_from):
        changed = _changed(tx, planned, last["version"])
    full = changed is None
    base = number if full else last["base"]
    recorded, gone = changed or (planned.snapshot.lanes, [])
    if planned.alone:
        tx.put(PolicyText(policy.digest(), canonical(policy.document()).decode()))
    else:
        remember_policy(tx, policy)
    rows = [[lane.key, lane.count, lane.in_order(age_from)] for lane in recorded]
    lanes = {"lanes": rows, "gone": gone, "window": planned.window}
    looked_at, written = snapshot_document(planned.snapshot), plan_bytes(plan)
    decision = Decision(
        number=number,
        at=planned.now,
        base=base,
        policy=policy.digest(),
        planner=PLANNER_VERSION,
        lanes=_pack(lanes),
        rest=_pack({name: value for name, value in looked_at.items() if name != "lanes"}),
        plan=_squeeze(written),
        digests={
            "snapshot": digest(canonical(looked_at)),
            "policy": policy.digest(),
            "plan": digest(written),
        },
    )
    size = len(decision.lanes) + len(decision.rest) + len(decision.plan)
    if full:
        last = {
            "base": number, "version": planned.mark.version, "count": 0, "age_from": age_from,
            "window": planned.window, "sizes": [*last.get("sizes", []), [number, 0]],
        }  # fmt: skip
    tx.put_decision(decision, _remember(tx, last, holds, size))
    if planned.alone:
        start_anew(tx)
    return number


def _stale(last: _Last, planned: PlannedRound, age_from: str) -> bool:
    """Whether all lanes must be recorded: there is no base, or it is old or too short for this."""
    if "base" not in last or last["count"] >= FULL_EVERY:
        return True
    return last["age_from"] != age_from or last.get("window", 0) < planned.window


def _changed(
    tx: Writing, planned: PlannedRound, since: int
) -> tuple[tuple[Lane, ...], list[LaneKey]] | None:
    """The lanes that differ from the base, and those that are gone; None: nobody knows."""
    news = tx.news(tx.mark()._replace(version=since))
    if news.anything:
        return None
    changed = news.lanes
    wanted = changed | planned.widened
    recorded = tuple(lane for lane in planned.snapshot.lanes if lane.key in wanted)
    return recorded, sorted(changed - {lane.key for lane in recorded}, key=str)


def remember_policy(tx: Writing, policy: Policy) -> None:
    """Keep the text of a policy once, and that it is the one in force."""
    digest = policy.digest()
    if tx.value("policy") != digest:
        tx.put(PolicyText(digest, canonical(policy.document()).decode()))
        tx.put_value("policy", digest)


def start_anew(tx: Writing) -> None:
    """The next decision records all lanes: what came before may be gone."""
    last = tx.value("decision")
    if last:
        last.pop("base", None)
        tx.put_value("decision", last)


def listing(context: Context, cursor: int = 0, limit: int = 100) -> DecisionsAnswer:
    """Recorded plans in short."""
    with context.store.read() as reading:
        rows = [_listed(row) for row in reading.decisions(cursor, limit)]
    following = rows[-1]["decision"] if len(rows) == limit else None
    return {"schema": SCHEMA, "decisions": rows, "cursor": following}


def show(context: Context, number: int) -> DecisionAnswer:
    """One recorded plan, whole."""
    with context.store.read() as reading:
        decision = _one(reading, number)
    try:
        return {"schema": SCHEMA, **_short(decision), "plan": _unpack(decision.plan)}
    except _DAMAGE as error:
        hint = "The others are whole, or named too: fairlane replay --all."
        message = f"the record of decision {number} is damaged: {_fault(error)}"
        raise Refused(message, hint, "damaged_record") from error


def replay(context: Context, number: int | None = None, planner: str = "lanes") -> ReplayedAnswer:
    """Plan again from the record, of one or of all; every difference is named."""
    if number is None:
        return replay_after(context, 0, planner)
    with context.store.read() as reading:
        return _replay(reading, iter([_one(reading, number)]), planner)


def replay_after(context: Context, number: int, planner: str = "lanes") -> ReplayedAnswer:
    """The same of all decisions after one."""
    with context.store.read() as reading:
        return _replay(reading, _all(reading, number), planner)


def _replay(reading: Reading, wanted: Iterator[Decision], planner: str) -> ReplayedAnswer:
    different: list[DifferenceDocument] = []
    count = 0
    bases: dict[int, dict[LaneKey, Lane]] = {}
    policies: dict[str, Policy] = {}
    for decision in wanted:
        count += 1
        try:
            difference = _replayed(reading, decision, planner, bases, policies)
        except _DAMAGE as error:
            difference = [f"its record is damaged: {_fault(error)}"]
        if difference:
            different.append({"decision": decision.number, "differences": difference})
    return {"schema": SCHEMA, "replayed": count, "different": different}


def _fault(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def snapshot_of(
    reading: Reading, decision: Decision, bases: dict[int, dict[LaneKey, Lane]]
) -> Snapshot:
    """The snapshot from which a decision was made."""
    if decision.base not in bases:
        base = decision if decision.base == decision.number else _recorded(reading, decision.base)
        if base is None:
            message = f"decision {decision.number} needs decision {decision.base}, which is gone"
            raise NotFound(message, "Older decisions are dropped; replay a newer one.")
        bases.clear()
        bases[decision.base] = _lanes(base)[0]
    known = dict(bases[decision.base])
    if decision.base != decision.number:
        changed, gone, window = _lanes(decision)
        for key in gone:
            known.pop(key, None)
        known = {key: _cut(lane, window) for key, lane in known.items()} | changed
    snapshot: Snapshot = decode(Snapshot, _unpack(decision.rest))
    return replace(snapshot, lanes=tuple(known.values()))


def _replayed(
    reading: Reading,
    decision: Decision,
    planner: str,
    bases: dict[int, dict[LaneKey, Lane]],
    policies: dict[str, Policy],
) -> list[str]:
    policy = policies.get(decision.policy)
    if policy is None:
        text = reading.table(PolicyText).get(decision.policy)
        if text is None:
            return [f"its policy {decision.policy[:12]} is gone"]
        policy = policies[decision.policy] = parse_recorded(text.text)
    snapshot = snapshot_of(reading, decision, bases)
    make = reference.plan if planner == "reference" else lanes.plan
    again = plan_bytes(make(snapshot, policy, decision.at))
    before = _widen(decision.plan)
    return [] if again == before else _differences(json.loads(before), json.loads(again))


def _differences(before: dict[str, object], again: dict[str, object]) -> list[str]:
    return [
        f"{key}: recorded {json.dumps(before.get(key))}, planned {json.dumps(again.get(key))}"
        for key in sorted(before.keys() | again.keys())
        if before.get(key) != again.get(key)
    ]


def _remember(tx: Writing, last: _Last, holds: list[str], size: int) -> int:
    """Note what the next record must know; the first number to keep when all take too much."""
    sizes, oldest = last["sizes"], 0
    sizes[-1][1] += size
    while len(sizes) > 1 and sum(total for _, total in sizes) > BYTES_MAX:
        sizes.pop(0)
        oldest = sizes[0][0]
    last |= {"count": last["count"] + 1, "holds": holds, "sizes": sizes}
    tx.put_value("decision", last)
    return oldest


def _listed(decision: Decision) -> DecisionDocument:
    """In short, though its record may be damaged."""
    try:
        return _short(decision)
    except _DAMAGE:
        plan = canonical({"picks": [], "reclaims": [], "reason": "damaged"})
        return _short(replace(decision, plan=plan))


def _short(decision: Decision) -> DecisionDocument:
    plan = _unpack(decision.plan)
    return {
        "decision": decision.number,
        "at": show_instant(decision.at),
        "picks": [pick["task"] for pick in plan["picks"]],
        "reclaims": [reclaim["task"] for reclaim in plan["reclaims"]],
        "reason": plan["reason"],
        "policy": decision.policy,
        "digests": cast("DigestsDocument", dict(decision.digests)),
    }


def _one(reading: Reading, number: int) -> Decision:
    decision = _recorded(reading, number)
    if decision is None:
        raise NotFound(f"no decision {number}", "`fairlane replay --list` names what is kept.")
    return decision


def _recorded(reading: Reading, number: int) -> Decision | None:
    return next((row for row in reading.decisions(number - 1, 1) if row.number == number), None)


def _all(reading: Reading, after: int) -> Iterator[Decision]:
    while page := reading.decisions(after, _PAGE):
        yield from page
        after = page[-1].number


def _lanes(decision: Decision) -> tuple[dict[LaneKey, Lane], list[LaneKey], int]:
    """The lanes that are recorded, those that are gone, and how many tasks of others were read."""
    document = _unpack(decision.lanes)
    recorded = {}
    for parts, count, rows in document["lanes"]:
        key = lane_key(parts)
        entries = tuple(Entry(*row) for row in rows)
        recorded[key] = Lane(key, count, entries, entries)
    return recorded, [lane_key(parts) for parts in document["gone"]], document["window"]


def _cut(lane: Lane, window: int) -> Lane:
    """The lane as it was read: a plan names the tasks that it saw."""
    if len(lane.by_ready) <= window:
        return lane
    return Lane(lane.key, lane.count, lane.by_ready[:window], lane.by_created[:window])


def _pack(document: object) -> bytes:
    return _squeeze(canonical(document))


def _unpack(data: bytes) -> Any:
    return json.loads(_widen(data))


def _squeeze(data: bytes) -> bytes:
    """Fewer bytes where that is worth the time; what is short stays as it is: it begins with {."""
    return data if len(data) < SHORT else zlib.compress(data, 1)


def _widen(data: bytes) -> bytes:
    return data if data.startswith(b"{") else zlib.decompress(data)


#: How often it is done by itself.
EVERY = DAY


def compact(context: Context) -> dict[str, object]:
    """Finished tasks become tombstones; old events, decisions and minutes of usage are folded."""
    with context.store.write() as tx:
        policy, now = context.policy(), context.now()
        before = now - policy.history.keep
        counts = tx.compact(before)
        start_anew(tx)
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
