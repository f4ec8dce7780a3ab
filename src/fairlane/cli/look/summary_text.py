"""A summary as people read it in the morning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.cli.keep.facts import usd
from fairlane.cli.output import about, count, cut, paint, safe, table, until_text, wrapped
from fairlane.model.instant import SECOND, parse_instant

if TYPE_CHECKING:
    from fairlane.model.instant import Instant

_DONE_SHOWN, _FAILED_SHOWN = 15, 8
_TITLE_MAX = 44


def summary_text(document: dict[str, Any]) -> str:
    """The whole answer, what matters most first."""
    now = parse_instant(document["now"])
    parts = [
        _head(document, now),
        _needs(document["needs_person"]),
        _done(document["done"], now),
        _failed(document["failures"], now),
        _projects(document["projects"]),
        _waits(document),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(document: dict[str, Any], now: Instant) -> str:
    span = about(now - parse_instant(document["since"]))
    done = document["done"]["count"]
    words = [paint(f"{count(done, 'task')} done", "bold", "green" if done else "dim")]
    parked = document["parked"]["count"]
    words += [paint(f"{parked} parked", "bold", "red")] if parked else []
    words.append(f"{document['in_flight']} in flight, {document['queued']['total']} queued")
    words += [f"{document['tokens']:,} tokens", *filter(None, [usd(document["usd"])])]
    return f"In the last {span}: " + ", ".join(words)


def _needs(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    lines = [paint("What needs you:", "bold", "yellow")]
    for each in rows:
        name = each["what"].removeprefix("task:")
        lines.append(wrapped(safe(f"{name}: {each['why']}"), 4, "  "))
        if each["what"].startswith("task:"):
            lines.append(paint(safe(f"    fairlane retry {name}"), "dim"))
    return "\n".join(lines)


def _done(done: dict[str, Any], now: Instant) -> str:
    rows = [
        (
            each["id"],
            each["project"],
            each["kind"],
            until_text(parse_instant(each["ended_at"]), now),
            length(each["seconds"]),
            f"{each['tokens']:,}",
            usd(each["usd"]),
            cut(each["title"], _TITLE_MAX),
        )
        for each in done["tasks"][-_DONE_SHOWN:]
    ]
    if not rows:
        return ""
    head = ("task", "project", "kind", "ended", "took", "tokens", "cost", "title")
    more = done["count"] - len(rows)
    text = paint("Done:", "bold", "green") + "\n" + table(head, rows, right=(4, 5, 6))
    return text + (paint(f"\n  … and {more} before", "dim") if more > 0 else "")


def _failed(rows: list[dict[str, Any]], now: Instant) -> str:
    if not rows:
        return ""
    lines = [paint("Attempts that failed:", "bold")]
    for each in rows[-_FAILED_SHOWN:]:
        what = f"{each['outcome']}: {each['detail']}" if each["detail"] else each["outcome"]
        when = until_text(parse_instant(each["ended_at"]), now)
        lines.append(
            wrapped(safe(f"{each['id']}, attempt {each['attempt']}, {when}: {what}"), 4, "  ")
        )
    return "\n".join(lines)


def _projects(rows: list[dict[str, Any]]) -> str:
    if len(rows) < 2:
        return ""
    lines = [
        (
            each["project"],
            each["starts"],
            each["completions"],
            f"{each['tokens']:,}",
            usd(each["usd"]),
        )
        for each in rows
    ]
    head = ("project", "starts", "done", "tokens", "cost")
    return paint("By project:", "bold") + "\n" + table(head, lines, right=(1, 2, 3, 4))


def _waits(document: dict[str, Any]) -> str:
    waits = document["waits"]
    if not waits["count"]:
        return ""
    half, most = _most(waits["p50"]), _most(waits["p90"])
    return f"Half of the starts waited {half}, nine of ten {most}."


def _most(seconds: float) -> str:
    told = about(int(seconds * SECOND))
    return told if told.startswith("less") else f"at most {told}"


def length(seconds: float | None) -> str:
    """`3m 20s`, `<1s`."""
    return "" if seconds is None else about(int(seconds * SECOND)).replace("less than ", "<")
