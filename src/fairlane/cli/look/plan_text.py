"""A plan as people read it: what starts, why in this order, what is held and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.cli.output import (
    count,
    in_seconds,
    listed,
    paint,
    relative,
    safe,
    table,
    unsaid,
    until_text,
    wrapped,
)
from fairlane.model.instant import parse_instant, show_instant
from fairlane.model.plan import Clocks, Held, Hold, Pick, Plan, Reason, Reclaim, Room, ScoreParts
from fairlane.model.project import CLOCK_SCALE
from fairlane.model.task import LaneKey, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlane.model.documents.parts import HoldDocument
    from fairlane.model.documents.reports import PickDocument, PlanDocument
    from fairlane.model.instant import Instant
    from fairlane.policy.policy import Policy

#: Key of the order -> what starts first by it.
FIRST = {
    "guarantee": "projects that are owed a start",
    "share": "the project furthest behind its share",
    "overdue": "overdue tasks",
    "priority": "lower priority numbers",
    "score": "higher scores",
    "age": "older tasks",
}
ENDED = {
    Reason.PAUSED: "Everything is paused.",
    Reason.NONE: "Nothing is ready.",
    Reason.READY: "Everything that was ready starts.",
    Reason.CAPACITY: "There is no room for more.",
    Reason.BATCH: "The batch of this interval is full.",
    Reason.HELD: "What is left is held by other rules.",
}


def plan_text(plan: Plan, policy: Policy) -> str:
    """The whole plan, part by part."""
    parts = [_head(plan, policy), _starts(plan, policy)]
    parts += [_reclaims(plan), *_holds(plan), _end(plan)]
    return "\n\n".join(part for part in parts if part)


def _head(plan: Plan, policy: Policy) -> str:
    room = plan.room
    of = "" if room.cap is None else f" of {room.cap}"
    free = "room without a limit" if room.free is None else f"room for {room.free or 'none'}"
    title = paint(f"Plan at {in_seconds(show_instant(plan.now))}", "bold")
    return f"{title} under policy {policy.preset_name}: {room.in_flight}{of} in flight, {free}"


def _starts(plan: Plan, policy: Policy) -> str:
    if not plan.picks:
        return paint("Nothing starts.", "bold")
    title = paint(f"{count(len(plan.picks), 'task').capitalize()} would start:", "bold", "green")
    shares = "share" in policy.order and policy.share.mode != "none"
    share = "tokens/weight" if policy.share.mode == "virtual-time" else "share"
    head = ["#", "task", "project", "kind", "worker", *([share] if shares else [])]
    rows = []
    for number, pick in enumerate(plan.picks, 1):
        where = pick.worker + (f" in {pick.workspace}" if pick.workspace is not None else "")
        row = [number, pick.task, pick.lane.project, pick.lane.kind, where]
        row += [_share(pick.share)] if shares else []
        rows.append([*row, pick.score.total, parts_text(pick.lane.kind, pick.score)])
    drawn = table([*head, "score", "made of"], rows, right=(0, 6 if shares else 5))
    return "\n".join([title, drawn, wrapped(f"First go {order_text(policy)}.", 2)])


def parts_text(kind: str, score: ScoreParts) -> str:
    """The terms of a score in words; those that are 0 are left out."""
    terms = [f"{kind} {score.kind}"]
    terms += [f"age {score.age}"] if score.age else []
    terms += [f"depth {score.depth}"] if score.depth else []
    text = " + ".join(terms)
    return text + (f" - failures {-score.retries}" if score.retries else "")


def order_text(policy: Policy) -> str:
    """What starts first, in one line, without the keys that cannot decide."""
    off = {
        "guarantee": policy.share.guarantee == 0,
        "share": policy.share.mode == "none",
        "overdue": policy.overdue.after is None,
    }
    keys = [key for key in policy.order if not off.get(key)]
    if "age" not in keys:
        keys.append("age")
    return ", then ".join(FIRST[key] for key in keys)


def share_text(share: Mapping[str, Any]) -> str:
    """The numbers of a project's share in words."""
    if share.get("mode") in ("deficit", "virtual-time") and not share["weight"]:
        return "has weight 0: it starts only when nobody else wants the slot"
    if share.get("mode") == "deficit" and share["weights"]:
        has = 100 * share["received"] / (share["received_by_all"] or 1)
        due = 100 * share["weight"] / share["weights"]
        return f"has {has:.1f} % of the tokens, is due {due:.1f} %"
    if share.get("mode") == "virtual-time":
        received = f"{share['clock'] // CLOCK_SCALE:,}"
        return f"has received {received} tokens per unit of weight (weight {share['weight']})"
    return ""


def _share(share: Mapping[str, Any]) -> str:
    """The same in a few letters."""
    if share["mode"] == "deficit":
        has = 100 * share["received"] / (share["received_by_all"] or 1)
        due = 100 * share["weight"] / (share["weights"] or 1)
        return f"{has:.1f} % of {due:.1f} %"
    return f"{share['clock'] // CLOCK_SCALE:,}"


def _reclaims(plan: Plan) -> str:
    if not plan.reclaims:
        return ""
    title = paint(f"{count(len(plan.reclaims), 'lease').capitalize()} ran out:", "bold", "yellow")
    lines = [f"  {safe(reclaim.task)} goes back to {reclaim.status}" for reclaim in plan.reclaims]
    return "\n".join([title, *lines])


def _holds(plan: Plan) -> list[str]:
    """Held by a rule, waiting for something of its own, and what nothing will free."""
    wrong = [row for row in plan.holds if row.hold.misconfigured]
    waiting = [row for row in plan.holds if row.hold.gate == "readiness"]
    ruled = [row for row in plan.holds if row not in wrong and row not in waiting]
    return [
        _group("Held by a rule", ruled, plan.now, "yellow"),
        _group("Waiting for something of their own", waiting, plan.now, "cyan"),
        _group("Misconfigured, so that nothing will free them", wrong, plan.now, "red"),
    ]


def _group(title: str, holds: list[Held], now: Instant, colour: str) -> str:
    if not holds:
        return ""
    total = sum(row.count for row in holds)
    lines = [paint(f"{title}: {count(total, 'task')}", "bold", colour)]
    merged = _by_hold(holds)
    wide = max(len(hold.code) for hold in merged)
    figures = max(len(str(number)) for number, _ in merged.values())
    for hold, (number, ids) in merged.items():
        lead = f"  {hold.code:{wide}}  {number:{figures}}  "
        names = safe(listed(ids[:5], number))
        lines.append(wrapped(safe(reason_text(hold, now)), len(lead), lead))
        lines.append(paint(wrapped(names, len(lead)), "dim"))
    return "\n".join(lines)


def reason_text(hold: Hold, now: Instant) -> str:
    """The sentence of a hold, with the holders and the end where it does not name them."""
    others = unsaid(hold.code, hold.reason, hold.holders)
    text = in_seconds(hold.reason) + (f" (by {listed(others[:5], len(others))})" if others else "")
    if hold.until is None:
        return text
    said = show_instant(hold.until) in hold.reason
    return f"{text}, {until_text(hold.until, now) if said else relative(hold.until, now)}"


def _by_hold(holds: Iterable[Held]) -> dict[Hold, tuple[int, list[str]]]:
    """Lanes that one rule holds for one reason are one line."""
    merged: dict[Hold, tuple[int, list[str]]] = {}
    for row in holds:
        number, ids = merged.get(row.hold, (0, []))
        merged[row.hold] = (number + row.count, [*ids, *row.tasks])
    return merged


def _end(plan: Plan) -> str:
    ended = ENDED[plan.reason]
    if plan.reason is Reason.CAPACITY:
        full = plan.room.cap is not None and plan.room.in_flight + len(plan.picks) >= plan.room.cap
        what = f"cap all ({plan.room.cap}) is full" if full else "every slot is busy"
        ended = f"There is no room for more: {what}."
    if plan.wake_at is None:
        return f"{ended} Time alone changes nothing."
    return wrapped(
        f"{ended} The next change by time alone comes {relative(plan.wake_at, plan.now)}.", 0
    )


def plan_of(document: PlanDocument) -> Plan:
    """The plan, as far as its document tells it."""
    wake_at, room = document["wake_at"], document["capacity"]
    return Plan(
        now=parse_instant(document["now"]),
        room=Room(room["cap"], room["in_flight"], room["free"]),
        picks=tuple(map(_pick, document["picks"])),
        reclaims=tuple(
            Reclaim(row["task"], row["lease"], Status(row["status"]))
            for row in document["reclaims"]
        ),
        holds=tuple(
            Held(hold_of(row), row["count"], tuple(row["tasks"])) for row in document["holds"]
        ),
        reason=Reason(document["reason"]),
        wake_at=None if wake_at is None else parse_instant(wake_at),
        clocks=Clocks(),
    )


def hold_of(row: HoldDocument) -> Hold:
    """A hold out of its document."""
    until = None if row["until"] is None else parse_instant(row["until"])
    return Hold(row["gate"], row["code"], row["reason"], until, tuple(row["holders"]))


def _pick(row: PickDocument) -> Pick:
    parts = row["score_parts"]
    return Pick(
        row["task"],
        LaneKey(project=row["project"], kind=row["kind"]),
        row["worker"],
        row["workspace"],
        row["estimate_tokens"],
        ScoreParts(parts["kind"], parts["age"], parts["depth"], parts["retries"]),
        row["share"],
    )
