"""`fairlane status`: what runs, what is queued and what holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.cli.call import Call
from fairlane.cli.output import (
    about,
    count,
    cut,
    listed,
    paint,
    safe,
    scope_text,
    table,
    until_text,
    wrapped,
    write,
)
from fairlane.cli.queue.tasks import hold_text
from fairlane.cli.verb import verb
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from fairlane.model.documents.admin import BudgetDocument, PoolDocument
    from fairlane.model.documents.parts import PauseDocument
    from fairlane.model.documents.reports import RunningDocument, StatusAnswer
    from fairlane.model.instant import Instant


@verb("status", {})
def command(call: Call) -> None:
    """How things stand: in flight of cap, queued and held by which rule, parked, pools, budgets.

    \b
    Example:
      fairlane status
    """
    document: StatusAnswer = call.ask("status")
    call.show(document, lambda: status_text(document))
    if call.json or call.server is not None:
        return
    queued = document["queued"]
    unattended = not document["running"] and not (call.folder / "daemon.json").exists()
    if unattended and queued["ready"] > queued["held"]:
        write("\nNo daemon runs here: `fairlane up` starts what is next.\n")


_BAR = 20
_PAUSED_TASKS_MAX = 3
_NOTE_MAX = 40


def status_text(document: StatusAnswer) -> str:
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


def _head(document: StatusAnswer, now: Instant) -> str:
    room, parked = document["capacity"], document["parked"]
    of = "" if room["cap"] is None else f" of {room['cap']}"
    lines = [paint(f"{room['in_flight']}{of} in flight", "bold")]
    lines[0] += f", {count(document['queued']['total'], 'task')} queued"
    if parked:
        lines[0] += ", " + paint(f"{parked} parked", "red")
    if room["mode"] != "deferred":
        lines[0] += f" ({room['mode']} mode)"
    lines += [paint(wrapped(safe(text), 0), "yellow") for text in _pauses(document["paused"], now)]
    return "\n".join(lines)


def _pauses(pauses: list[PauseDocument], now: Instant) -> list[str]:
    """A sentence for each pause; many tasks that are paused by themselves share one."""
    tasks = [pause["scope"][5:] for pause in pauses if pause["scope"].startswith("task:")]
    many = len(tasks) > _PAUSED_TASKS_MAX
    lines = []
    for pause in pauses:
        since = until_text(parse_instant(pause["since"]), now)
        why = f": {pause['reason']}" if pause["reason"] else ""
        if not (many and pause["scope"].startswith("task:")):
            lines.append(f"{scope_text(pause['scope'])} is paused by {pause['by']} {since}{why}")
    if many:
        names = listed(tasks[:_PAUSED_TASKS_MAX], len(tasks))
        lines.append(f"{len(tasks)} tasks are paused: {names} (fairlane list --held-by paused)")
    return lines


def _running(rows: list[RunningDocument], now: Instant) -> str:
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


def _queued(document: StatusAnswer, now: Instant) -> str:
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
    wide = max((len(hold["code"]) for hold in holds), default=0)
    figures = max((len(str(hold["count"])) for hold in holds), default=0)
    for hold in holds[:12]:
        lead = f"  {hold['code']:{wide}}  {hold['count']:{figures}}  "
        lines.append(wrapped(safe(hold_text(hold, now)), len(lead), lead))
    if len(holds) > 12:
        lines.append(paint(f"  … and {len(holds) - 12} reasons more: fairlane plan", "dim"))
    return "\n".join(lines)


def _pools(pools: list[PoolDocument], now: Instant) -> str:
    """Those that are not well; the others need no word."""
    texts = [(pool["name"], pool_text(pool, now)) for pool in pools]
    lines = [safe(f"  {name}  {text}") for name, text in texts if text != "well"]
    return "\n".join([paint("Pools:", "bold"), *lines]) if lines else ""


def pool_text(pool: PoolDocument, now: Instant) -> str:
    """How a pool is, in words."""
    if pool["paused"]:
        return "paused" + (f": {pool['reason']}" if pool["reason"] else "")
    cause = f": {pool['cause']}" if pool["cause"] else ""
    if pool["cooldown"] and pool["until"]:
        return f"cools down{cause}, ends {until_text(parse_instant(pool['until']), now)}"
    return f"is tried again with one task{cause}" if pool["probing"] else "well"


def budgets_text(budgets: list[BudgetDocument], now: Instant) -> str:
    """Every budget as a bar."""
    if not budgets:
        return ""
    wide = max(len(budget["scope"]) + len(budget["window"]) + 3 for budget in budgets)
    lines = [paint("Budgets:", "bold")]
    for budget in budgets:
        fraction, unit, frees = budget["fraction"], budget["unit"], budget["frees_at"]
        full = min(_BAR, int(_BAR * fraction))
        colour = "red" if fraction >= 1 else "yellow" if budget["warn"] else "green"
        bar = paint("█" * full, colour) + "░" * (_BAR - full)
        name = safe(f"{budget['scope']} ({budget['window']})")
        used, limit = _amount(budget["used"], unit), _amount(budget["limit"], unit)
        used += f" + {_amount(budget['reserved'], unit)} reserved" if budget["reserved"] else ""
        ends = f", frees {until_text(parse_instant(frees), now)}" if frees else ""
        lines.append(f"  {name:{wide}}  {bar} {fraction:4.0%}  {used} of {limit}{ends}")
    return "\n".join(lines)


def _amount(number: float, unit: str) -> str:
    return f"${number:,.2f}" if unit == "usd" else f"{number:,}"


def _end(document: StatusAnswer, now: Instant) -> str:
    warnings = [warning["message"] for warning in document["warnings"]]
    lines = [paint(wrapped(safe(text), 2, "! "), "yellow") for text in warnings]
    cycle = document["last_cycle"]
    if cycle:
        when = until_text(parse_instant(str(cycle["at"])), now)
        did = [f"{cycle['picks']} started"] if cycle["picks"] else []
        did += [f"{cycle['reclaims']} reclaimed"] if cycle["reclaims"] else []
        lines.append(paint(f"Last cycle {when}: {listed(did) or 'nothing'}.", "dim"))
    if document["parked"]:
        lines.append(paint("Parked tasks: fairlane list --status parked", "dim"))
    return "\n".join(lines)
