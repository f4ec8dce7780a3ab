"""Tasks as people read them: one line when one line is enough, else a table."""

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
)
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.model.instant import Instant

#: Status -> its colour.
TINT = {
    "ready": "green",
    "held": "yellow",
    "leased": "cyan",
    "running": "cyan",
    "done": "green",
    "parked": "red",
    "canceled": "dim",
}
TITLE_MAX = 26


def added_text(document: dict[str, Any], look: tuple[str, str, bool] | None) -> str:
    """What was added, and when its turn is. `look`: kind and project of one, and if it waits."""
    rows = document["tasks"]
    would = "would be " if document.get("dry_run") else ""
    new = [row for row in rows if row["created"]]
    known = [row for row in rows if not row["created"]]
    if len(rows) == 1:
        return _one(rows[0], look)
    parts = []
    if new:
        names = [row["id"] for row in new]
        shown = names if len(names) <= 5 else [f"{names[0]} … {names[-1]}"]
        parts.append(f"{count(len(new), 'task')} {would}added: {listed(shown)}")
    if known:
        names = [row["id"] for row in known]
        parts.append(f"{count(len(known), 'task')} known already: {listed(names[:5], len(names))}")
    return safe("; ".join(parts) or "nothing to add")


def _one(row: dict[str, Any], look: tuple[str, str, bool] | None) -> str:
    name = row["id"]
    if not row["created"]:
        again = " (put back)" if row["status"] == "queued" and row.get("again") else ""
        return safe(f"{name} is known already: {row['status']}{again}")
    if look is None:  # a dry run
        return safe(f"{name} would be added{place(row['position'])}")
    kind, project, waits = look
    turn = ": waits" if waits else place(row["position"])
    return safe(f"added {name} ({kind}, {project}){turn}")


def place(position: int | None) -> str:
    """`: next`, `: next but one`, `: 7th of its project`."""
    if position is None:
        return ""
    if position <= 2:
        return ": next" if position == 1 else ": next but one"
    return f": {ordinal(position)} of its project"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `13th`."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    end = "th" if number % 100 in (11, 12, 13) else ends.get(number % 10, "th")
    return f"{number}{end}"


def changed_text(rows: Sequence[dict[str, Any]], nothing: str) -> str:
    """What became of tasks, by status."""
    if not rows:
        return nothing
    by: dict[str, list[str]] = {}
    for row in rows:
        word = f"asked to stop ({row['status']})" if row.get("stop_requested") else row["status"]
        by.setdefault(word, []).append(row["id"])
    lines = []
    for word, names in by.items():
        verb = "is" if len(names) == 1 else "are"
        if word.startswith("asked"):
            verb = "was" if len(names) == 1 else "were"
        lines.append(safe(f"{listed(names[:20], len(names))} {verb} {word}"))
    return "\n".join(lines)


def list_text(document: dict[str, Any], now: Instant) -> str:
    """A table of tasks, empty without any; columns that say nothing are left out."""
    rows = document["tasks"]
    if not rows:
        return ""
    grouped = any(row["group"] for row in rows)
    head = ["task", "status", "project", "kind", *(["group"] if grouped else [])]
    head += ["prio", "tries", "age", "title", "why"]
    lines = []
    for row in rows:
        line = [row["id"], word_of(row), row["project"], row["kind"]]
        line += [row["group"] or ""] if grouped else []
        line += [row["priority"], row["attempts"] or "", _age(row, now)]
        lines.append([*line, cut(row["title"], TITLE_MAX), reason_of(row, now)])
    if not any(row["title"] for row in rows):
        head.remove("title")
        lines = [[*line[:-2], line[-1]] for line in lines]
    at = head.index("prio")
    drawn = table(head, lines, right=(at, at + 1, at + 2), tint=TINT)
    more = "" if document["cursor"] is None else "\n  … and more: give --limit, or narrow the list"
    return drawn + paint(more, "dim")


def word_of(row: dict[str, Any]) -> str:
    """The status; of a queued task whether it is ready, held or waits."""
    if row["status"] != "queued":
        return "stopping" if row["stop_requested"] else str(row["status"])
    if not row["ready"]:
        return "waits"
    return "held" if row["hold"] else "ready"


def reason_of(row: dict[str, Any], now: Instant) -> str:
    """Why it is where it is."""
    hold = row["hold"]
    if hold is None:
        return str(row["stop_requested"] or row["reason"])
    return hold_text(hold | {"holders": []}, now)


def hold_text(hold: dict[str, Any], now: Instant) -> str:
    """The sentence of a hold, with its holders and its end where it does not name them."""
    unsaid = [task for task in hold["holders"] if task not in hold["reason"]]
    text = in_seconds(hold["reason"]) + (
        f" (by {listed(unsaid[:3], len(unsaid))})" if unsaid else ""
    )
    until = hold["until"]
    return text if until is None else f"{text}, {until_text(parse_instant(until), now)}"


def _age(row: dict[str, Any], now: Instant) -> str:
    return about(max(0, now - parse_instant(row["created_at"]))).split(" ")[0].replace("less", "0s")
