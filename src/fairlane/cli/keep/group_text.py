"""Groups as people read them: the tree with its bars, and the story so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.cli.keep.facts import facts, shown, usd
from fairlane.cli.output import (
    about,
    cells,
    count,
    cut,
    in_seconds,
    listed,
    paint,
    safe,
    until_text,
    wrapped,
)
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlane.model.instant import Instant

BAR = 16
NOTE_MAX = 60
NAMED = 5
#: What is told of many before it is cut short.
LINES = 20


def story_text(group: dict[str, Any], now: Instant) -> str:
    """One group whole."""
    title = f"  {safe(cut(group['title'], NOTE_MAX))}" if group["title"] else ""
    parts = [paint(safe(group["name"]), "bold") + title, *_tree(group["tree"])]
    parts += _section("running", (_running(each, now) for each in group["running"]))
    if group["next"]:
        parts += _section("next", [_named(group["next"], len(group["next"]))])
    parts += _section("held", (_held(each) for each in group["holds"]))
    parts += _section("parked", (f"{each['id']}: {each['reason']}" for each in group["parked"]))
    told = {
        "parent": shown(group["parent"]),
        "priority": shown(group["priority"]),
        "time": _time(group["span"], now),
        "used": _used(group),
    }
    return "\n".join([*parts, facts(told)])


def added_text(name: str, document: dict[str, Any]) -> str:
    """What was added: the group, its tasks, and what was left out."""
    would = "would be " if document.get("dry_run") else ""
    if "tasks" not in document:
        return safe(
            f"added group {name}" if document["created"] else f"there is a group already: {name}"
        )
    new = [row["id"] for row in document["tasks"] if row["created"]]
    known = len(document["tasks"]) - len(new)
    groups = sum(each["created"] for each in document["groups"])
    lines = [f"{count(groups, 'group')} and {count(len(new), 'task')} {would}added to {name}"]
    if known:
        lines.append(f"  {count(known, 'task')} known already")
    lines += [f"  left out {each['id']}: {each['reason']}" for each in document["unrouted"]]
    return "\n".join(map(safe, lines))


def changed_text(document: dict[str, Any]) -> str:
    """A group after a change."""
    group = document["group"]
    told = {
        "title": group["title"],
        "progress": group["progress"],
        "said": said(group),
        "parent": shown(group["parent"]),
        "priority": shown(group["priority"]),
        "groups": listed(group["groups"][:LINES], len(group["groups"])),
        "followed": count(document["followed"], "queued task") if document["followed"] else "",
    }
    return paint(safe(group["name"]), "bold") + "\n" + facts(told)


def said(group: dict[str, Any]) -> str:
    """What is to be said of a group beside its numbers."""
    return ", ".join(word for word in ("done", "stranded", "paused") if group[word])


def bar(done: int, total: int) -> str:
    """How far it is, drawn; full only when all is done."""
    part = BAR * done // total if total else 0
    return paint("█" * part, "green") + paint("░" * (BAR - part), "dim")


def _tree(rows: list[dict[str, Any]]) -> Iterator[str]:
    wide = max(cells(safe(each["name"])) + 2 * each["depth"] for each in rows)
    for each in rows[:LINES]:
        name = "  " * each["depth"] + safe(each["name"])
        gap = " " * (wide - cells(name))
        over = each["by_status"]["done"] + each["by_status"]["canceled"]
        yield f"  {name}{gap}  {bar(over, each['total'])}  {_counts(each)}"
    if len(rows) > LINES:
        yield f"  … and {count(len(rows) - LINES, 'group')} more"


def _counts(group: dict[str, Any]) -> str:
    by = group["by_status"]
    running = by["leased"] + by["running"]
    parts = [group["progress"]] if group["total"] else ["no task"]
    parts += [f"{number} {word}" for number, word in (
        (running, "running"), (group["ready"], "ready"), (group["waiting"], "waiting"),
    ) if number]  # fmt: skip
    extra = [word for word in ("stranded", "paused") if group[word]]
    return ", ".join(parts) + (" " + paint(f"({', '.join(extra)})", "yellow") if extra else "")


def _section(title: str, lines: Iterable[str]) -> list[str]:
    found = list(lines)
    shown_ones = [wrapped(safe(line), 6, "    ") for line in found[:LINES]]
    if len(found) > LINES:
        shown_ones.append(f"    … and {len(found) - LINES} more")
    return [f"  {paint(title, 'dim')}", *shown_ones] if found else []


def _running(row: dict[str, Any], now: Instant) -> str:
    since = about(max(0, now - parse_instant(row["since"]))) if row["since"] else ""
    words = [f"{row['id']} on {row['worker']}" if row["worker"] else row["id"]]
    words += [f"for {since}"] if since else []
    words += [f"attempt {row['attempt']}"] if row["attempt"] > 1 else []
    said_last = cut(row["note"] or row["title"], NOTE_MAX)
    return ", ".join(words) + (f": {said_last}" if said_last else "")


def _held(row: dict[str, Any]) -> str:
    return f"{in_seconds(row['reason'])}: {_named(row['tasks'], row['count'])}"


def _named(ids: list[str], total: int) -> str:
    return listed(ids[:NAMED], total)


def _time(span: dict[str, str | None], now: Instant) -> str:
    if span["from"] is None:
        return ""
    start = parse_instant(span["from"])
    if span["until"] is None:
        return f"since {in_seconds(span['from'])}, {about(max(0, now - start))} so far"
    end = parse_instant(span["until"])
    return f"{about(max(0, end - start))}, ended {until_text(end, now)}"


def _used(group: dict[str, Any]) -> str:
    cost = usd(group["usd"])
    if not group["tokens"]:
        return cost
    return f"{group['tokens']:,} tokens" + (f", {cost}" if cost else "")
