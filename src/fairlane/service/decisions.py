"""Decisions: every plan that did something, with what it was made from, to be replayed."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

from fairlane.model.codec import canonical, decode
from fairlane.model.errors import NotFound
from fairlane.model.instant import Instant, show_instant
from fairlane.model.lane import Entry, Lane, LaneKey
from fairlane.model.snapshot import Snapshot
from fairlane.planner import lanes, reference
from fairlane.planner.digest import digest, plan_bytes, snapshot_document
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk, parse_recorded
from fairlane.service.looking import Seen
from fairlane.store.base import Decision, Reading, Writing

#: Grows when the same input may give another plan.
PLANNER_VERSION = 1
#: All lanes are recorded this often; between, only those that changed since.
FULL_EVERY = 256
#: Most bytes that records take together.
BYTES_MAX = 64 * 1024 * 1024
#: Documents with fewer bytes are recorded as they are.
SHORT = 1024
_PAGE = 200


def record(tx: Writing, seen: Seen, policy: Policy, now: Instant, before: int) -> int | None:
    """Keep a plan that picked or reclaimed something, or changed the set of holds.

    `before` is the store's version before the plan; it may be the transaction's own already, so
    that lanes count as changed from that version on, not only after it.
    """
    plan = seen.plan
    held = sorted({f"{each.hold.gate}/{each.hold.code}" for each in plan.holds})
    last: dict[str, Any] = tx.value("decision") or {}
    if not plan.picks and not plan.reclaims and last.get("holds") == held:
        return None
    number = tx.number("decision")
    age_from = policy.score.age_from
    full = seen.alone or _stale(last, seen, age_from)
    base = number if full else last["base"]
    kept, gone = (seen.snapshot.lanes, []) if full else _changed(tx, seen, last["version"])
    if seen.alone:
        tx.put_policy_text(policy.digest(), canonical(policy.document()).decode())
    else:
        remember_policy(tx, policy)
    looked_at, written = snapshot_document(seen.snapshot), plan_bytes(plan)
    decision = Decision(
        number=number,
        at=now,
        base=base,
        policy=policy.digest(),
        planner=PLANNER_VERSION,
        lanes=_pack(
            {
                "lanes": [[x.key, x.count, x.in_order(age_from)] for x in kept],
                "gone": gone,
                "window": seen.window,
            }
        ),
        rest=_pack({name: held for name, held in looked_at.items() if name != "lanes"}),
        plan=_squeeze(written),
        digests={
            "snapshot": digest(canonical(looked_at)),
            "policy": policy.digest(),
            "plan": digest(written),
        },
    )
    tx.put_decision(decision)
    size = len(decision.lanes) + len(decision.rest) + len(decision.plan)
    fresh: dict[str, Any] = {"base": number, "version": before - 1, "count": 0}
    fresh |= {"age_from": age_from, "window": seen.window}
    _remember(tx, last, fresh if full else {}, held, size)
    if seen.alone:
        start_anew(tx)
    return number


def _stale(last: dict[str, Any], seen: Seen, age_from: str) -> bool:
    """Whether all lanes must be recorded: there is no base, or it is old or too short for this."""
    if "base" not in last or last["count"] >= FULL_EVERY:
        return True
    return bool(last["age_from"] != age_from or last.get("window", 0) < seen.window)


def _changed(tx: Writing, seen: Seen, since: int) -> tuple[tuple[Lane, ...], list[LaneKey]]:
    """The lanes that differ from the base, and those that are gone."""
    changed = tx.lanes_changed(since)
    wanted = changed | seen.widened
    kept = tuple(lane for lane in seen.snapshot.lanes if lane.key in wanted)
    return kept, sorted(changed - {lane.key for lane in kept}, key=str)


def remember_policy(tx: Writing, policy: Policy) -> None:
    """Keep the text of a policy once, and that it is the one in force."""
    digest = policy.digest()
    if tx.value("policy") != digest:
        tx.put_policy_text(digest, canonical(policy.document()).decode())
        tx.put_value("policy", digest)


def start_anew(tx: Writing) -> None:
    """The next decision records all lanes: what came before may be gone."""
    last = tx.value("decision")
    if last:
        last.pop("base", None)
        tx.put_value("decision", last)


def listing(desk: Desk, after: int = 0, limit: int = 100) -> dict[str, Any]:
    """Recorded decisions in short; `cursor` is the next `after`, if there may be more."""
    with desk.store.read() as reading:
        rows = [_short(each) for each in reading.decisions(after, limit)]
    cursor = rows[-1]["decision"] if len(rows) == limit else None
    return {"schema": SCHEMA, "decisions": rows, "cursor": cursor}


def show(desk: Desk, number: int) -> dict[str, Any]:
    """One recorded decision with its whole plan."""
    with desk.store.read() as reading:
        decision = _one(reading, number)
    return {"schema": SCHEMA, **_short(decision), "plan": _unpack(decision.plan)}


def replay(desk: Desk, number: int | None = None, planner: str = "lanes") -> dict[str, Any]:
    """Plan again from the record; every difference is named. Without a number: all of them."""
    found: list[dict[str, Any]] = []
    count = 0
    with desk.store.read() as reading:
        wanted = _all(reading) if number is None else [_one(reading, number)]
        bases: dict[int, dict[LaneKey, Lane]] = {}
        policies: dict[str, Policy] = {}
        for decision in wanted:
            count += 1
            difference = _replayed(reading, decision, planner, bases, policies)
            if difference:
                found.append({"decision": decision.number, "differences": difference})
    return {"schema": SCHEMA, "replayed": count, "different": found}


def snapshot_of(
    reading: Reading, decision: Decision, bases: dict[int, dict[LaneKey, Lane]]
) -> Snapshot:
    """The snapshot from which a decision was made."""
    if decision.base not in bases:
        base = decision if decision.base == decision.number else reading.decision(decision.base)
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
        text = reading.policy_text(decision.policy)
        if text is None:
            return [f"its policy {decision.policy[:12]} is gone"]
        policy = policies[decision.policy] = parse_recorded(text)
    snapshot = snapshot_of(reading, decision, bases)
    make = reference.plan if planner == "reference" else lanes.plan
    again = plan_bytes(make(snapshot, policy, decision.at))
    before = _widen(decision.plan)
    return [] if again == before else _differences(json.loads(before), json.loads(again))


def _differences(before: dict[str, Any], again: dict[str, Any]) -> list[str]:
    return [
        f"{key}: recorded {json.dumps(before.get(key))}, planned {json.dumps(again.get(key))}"
        for key in sorted(before.keys() | again.keys())
        if before.get(key) != again.get(key)
    ]


def _remember(
    tx: Writing,
    last: dict[str, Any],
    fresh: dict[str, Any],
    held: list[str],
    size: int,
) -> None:
    """What the next record must know; the oldest are dropped when all take too much."""
    sizes: list[list[int]] = last.get("sizes", [])
    if fresh:
        last = fresh
        sizes = [*sizes, [fresh["base"], 0]]
    sizes[-1][1] += size
    while len(sizes) > 1 and sum(each for _, each in sizes) > BYTES_MAX:
        sizes.pop(0)
        tx.drop_decisions(sizes[0][0])
    last |= {"count": last["count"] + 1, "holds": held, "sizes": sizes}
    tx.put_value("decision", last)


def _short(decision: Decision) -> dict[str, Any]:
    plan = _unpack(decision.plan)
    return {
        "decision": decision.number,
        "at": show_instant(decision.at),
        "picks": [pick["task"] for pick in plan["picks"]],
        "reclaims": [each["task"] for each in plan["reclaims"]],
        "reason": plan["reason"],
        "policy": decision.policy,
        "digests": dict(decision.digests),
    }


def _one(reading: Reading, number: int) -> Decision:
    decision = reading.decision(number)
    if decision is None:
        raise NotFound(f"no decision {number}", "`fairlane replay --list` names what is kept.")
    return decision


def _all(reading: Reading) -> Any:
    after = 0
    while page := reading.decisions(after, _PAGE):
        yield from page
        after = page[-1].number


def _lanes(decision: Decision) -> tuple[dict[LaneKey, Lane], list[LaneKey], int]:
    """The lanes that are recorded, those that are gone, and how many tasks of others were read."""
    held = _unpack(decision.lanes)
    found = {}
    for parts, count, rows in held["lanes"]:
        key = _key(parts)
        entries = tuple(Entry(*row) for row in rows)
        found[key] = Lane(key, count, entries, entries)
    return found, [_key(parts) for parts in held["gone"]], held["window"]


def _cut(lane: Lane, window: int) -> Lane:
    """The lane as it was read: a plan names the tasks that it saw."""
    if len(lane.by_ready) <= window:
        return lane
    return Lane(lane.key, lane.count, lane.by_ready[:window], lane.by_created[:window])


def _key(parts: list[Any]) -> LaneKey:
    parts[8], parts[10] = tuple(parts[8]), tuple(parts[10])
    return LaneKey(*parts)


def _pack(document: Any) -> bytes:
    return _squeeze(canonical(document))


def _unpack(data: bytes) -> Any:
    return json.loads(_widen(data))


def _squeeze(data: bytes) -> bytes:
    """Fewer bytes where that is worth the time; what is short stays as it is: it begins with {."""
    return data if len(data) < SHORT else zlib.compress(data, 1)


def _widen(data: bytes) -> bytes:
    return data if data.startswith(b"{") else zlib.decompress(data)
