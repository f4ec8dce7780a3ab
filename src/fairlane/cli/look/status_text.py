"""How things stand, as people read it: what runs first, then what waits, then what needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.cli.output import (
    about,
    count,
    cut,
    in_seconds,
    listed,
    paint,
    safe,
    table,
    until_text,
    wrapped,
)
from fairlane.cli.queue.scope import scope_text
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from fairlane.model.instant import Instant

_BAR = 20
_NOTE_MAX = 40


def status_text(document: dict[str, Any]) -> str:
    """Everything, part by part; what there is none of is left out."""
    now = parse_instant(document["now"])
    parts = [
        _head(document, now),
        _running(document["running"], now),
        _queued(document, now),
        _pools(document["pools"], now),
        budgets_text(document["budgets"], now),
        _end(document, now),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(document: dict[str, Any], now: Instant) -> str:
    room, parked = document["capacity"], document["parked"]
    of = "" if room["cap"] is None else f" of {room['cap']}"
    lines = [paint(f"{room['in_flight']}{of} in flight", "bold")]
    lines[0] += f", {count(document['queued']['total'], 'task')} queued"
    if parked:
        lines[0] += ", " + paint(f"{parked} parked", "red")
    if room["mode"] != "deferred":
        lines[0] += f" ({room['mode']} mode)"
    for each in document["paused"]:
        since = until_text(parse_instant(each["since"]), now)
        why = f": {each['reason']}" if each["reason"] else ""
        text = f"{scope_text(each['scope'])} is paused by {each['by']} {since}{why}"
        lines.append(paint(wrapped(safe(text), 0), "yellow"))
    return "\n".join(lines)


def _running(rows: list[dict[str, Any]], now: Instant) -> str:
    if not rows:
        return ""
    lines = []
    for row in rows:
        age = now - parse_instant(row["leased_at"])
        what = row["note"] or row["title"]
        said = "stopping" if row["stop_requested"] else row["status"]
        lines.append(
            (
                row["task"],
                said,
                row["project"],
                row["kind"],
                row["worker"] or "",
                about(max(0, age)).replace("less than ", "<"),
                f"{row['tokens']:,}",
                safe(cut(what, _NOTE_MAX)),
            )
        )
    head = ("task", "status", "project", "kind", "worker", "for", "tokens", "what")
    tint = {"running": "cyan", "leased": "cyan", "stopping": "yellow"}
    return table(head, lines, right=(5, 6), tint=tint)


def _queued(document: dict[str, Any], now: Instant) -> str:
    queued = document["queued"]
    if not queued["total"]:
        return ""
    starts = queued["ready"] - queued["held"]
    words = [f"{starts} next"] if starts else []
    words += [f"{queued['held']} held"] if queued["held"] else []
    ready = f"{queued['ready']} ready" + (f" ({listed(words)})" if words else "")
    title = f"Queued: {ready}, {queued['waiting']} waiting"
    lines = [paint(title, "bold")]
    holds = document["holds"]
    wide = max((len(each["code"]) for each in holds), default=0)
    figures = max((len(str(each["count"])) for each in holds), default=0)
    for each in holds[:12]:
        lead = f"  {each['code']:{wide}}  {each['count']:{figures}}  "
        until = each["until"]
        text = in_seconds(each["reason"]) + (
            f", {until_text(parse_instant(until), now)}" if until else ""
        )
        lines.append(wrapped(safe(text), len(lead), lead))
    if len(holds) > 12:
        lines.append(paint(f"  … and {len(holds) - 12} reasons more: fairlane plan", "dim"))
    return "\n".join(lines)


def _pools(pools: list[dict[str, Any]], now: Instant) -> str:
    """Those that are not well; the others need no word."""
    from fairlane.cli.keep.pool import pool_text

    told = [(each["name"], pool_text(each, now)) for each in pools]
    lines = [safe(f"  {name}  {text}") for name, text in told if text != "well"]
    return "\n".join([paint("Pools:", "bold"), *lines]) if lines else ""


def budgets_text(budgets: list[dict[str, Any]], now: Instant) -> str:
    """Every budget as a bar."""
    if not budgets:
        return ""
    wide = max(len(each["scope"]) + len(each["window"]) + 3 for each in budgets)
    lines = [paint("Budgets:", "bold")]
    for each in budgets:
        full = min(_BAR, int(_BAR * each["fraction"]))
        colour = "red" if each["fraction"] >= 1 else "yellow" if each["warn"] else "green"
        bar = paint("█" * full, colour) + "░" * (_BAR - full)
        name = f"{each['scope']} ({each['window']})"
        used, limit = _amount(each["used"], each["unit"]), _amount(each["limit"], each["unit"])
        held = f" + {_amount(each['reserved'], each['unit'])} reserved" if each["reserved"] else ""
        frees = each["frees_at"]
        ends = f", frees {until_text(parse_instant(frees), now)}" if frees else ""
        lines.append(
            f"  {safe(name):{wide}}  {bar} {each['fraction']:4.0%}  {used}{held} of {limit}{ends}"
        )
    return "\n".join(lines)


def _amount(number: float, unit: str) -> str:
    return f"${number:,.2f}" if unit == "usd" else f"{number:,}"


def _end(document: dict[str, Any], now: Instant) -> str:
    warnings = [each["message"] for each in document["warnings"]]
    lines = [paint(wrapped(safe(each), 2, "! "), "yellow") for each in warnings]
    cycle = document["last_cycle"]
    if cycle:
        when = until_text(parse_instant(cycle["at"]), now)
        did = [f"{cycle['picks']} started"] if cycle["picks"] else []
        did += [f"{cycle['reclaims']} reclaimed"] if cycle["reclaims"] else []
        lines.append(paint(f"Last cycle {when}: {listed(did) or 'nothing'}.", "dim"))
    if document["parked"]:
        lines.append(paint("Parked tasks: fairlane list --status parked", "dim"))
    return "\n".join(lines)
