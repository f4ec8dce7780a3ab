"""What came of an import, as people read it: counts first, then names with reasons."""

from __future__ import annotations

from typing import Any

from fairlane.cli.output import count, listed, paint, safe, wrapped

#: How many of a sort are told by name.
NAMED_MAX = 10
#: Part of the answer -> its heading; each has an id and a reason.
_REASONED = {
    "canceled": "canceled",
    "held": "waits for its source",
    "conflicts": "left as it is",
    "skipped": "left out",
}


def imported_text(document: dict[str, Any]) -> str:
    """Counts in a line; what is new, changed, canceled, held, in conflict and left out."""
    lines = [_counts(document)]
    if document["created"]:
        lines += _where_to(document["created"])
    for row in document["changed"][:NAMED_MAX]:
        lines.append(_line("changed", row["id"], ", ".join(row["fields"])))
    lines += _more(len(document["changed"]), "changed")
    for part, heading in _REASONED.items():
        rows = document[part]
        lines += [_line(heading, _name(row), row["reason"]) for row in rows[:NAMED_MAX]]
        lines += _more(len(rows), heading)
    if document["groups"]:
        names = listed(document["groups"][:NAMED_MAX], len(document["groups"]))
        lines.append(_wrapped(f"new groups: {names}"))
    lines += [_wrapped(note) for note in document["notes"]]
    if document.get("written"):
        lines.append(_wrapped(f"told the source: {listed(document['written'][:NAMED_MAX])}"))
    if document["import"] is not None:
        lines.append(paint(_wrapped(f"To take it back: fairlane undo {document['import']}"), "dim"))
    return "\n".join(lines)


def undone_text(document: dict[str, Any]) -> str:
    """What was taken back, and what goes on."""
    would = "would be " if document["dry_run"] else ""
    ids = [row["id"] for row in document["canceled"]]
    names = f": {listed(ids[:NAMED_MAX], len(ids))}" if ids else ""
    told = f"import {document['import']} ({document['source']} {document['path']})"
    lines = [safe(f"{told}: {count(len(ids), 'task')} {would}canceled{names}")]
    lines += [_line("goes on", row["id"], row["reason"]) for row in document["left"][:NAMED_MAX]]
    return "\n".join([*lines, *_more(len(document["left"]), "go on")])


def _counts(document: dict[str, Any]) -> str:
    would = "would be " if document["dry_run"] else ""
    parts = [f"{count(len(document['created']), 'task')} {would}created"]
    words = {
        "changed": f"{would}changed",
        "canceled": f"{would}canceled",
        "unchanged": "unchanged",
        "skipped": "left out",
        "conflicts": "in conflict",
    }
    parts += [f"{len(document[part])} {word}" for part, word in words.items() if document[part]]
    if not document["created"] and len(parts) == 1:
        parts.append("there is nothing of its kind")
    return safe(f"{document['source']} {document['path']}: {', '.join(parts)}")


def _where_to(rows: list[dict[str, Any]]) -> list[str]:
    """The new tasks by project."""
    by: dict[str, list[str]] = {}
    for row in rows:
        by.setdefault(row["project"], []).append(row["id"])
    return [
        _wrapped(f"new in {project}: {listed(ids[:NAMED_MAX], len(ids))}")
        for project, ids in by.items()
    ]


def _name(row: dict[str, Any]) -> str:
    """The id; of a record that has none, the place."""
    name: str = row["id"]
    return row.get("where") or name if name == "?" else name


def _line(heading: str, name: str, reason: str) -> str:
    return _wrapped(f"{heading}: {name} ({reason})")


def _wrapped(text: str) -> str:
    return wrapped(safe(text), 4, "  ")


def _more(total: int, heading: str) -> list[str]:
    more = total - NAMED_MAX
    return [f"  … and {more} more {heading}; --json names them"] if more > 0 else []
