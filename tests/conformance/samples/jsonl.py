"""A file with one task a line."""

from __future__ import annotations

import json
from pathlib import Path

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample

LINES: list[dict[str, object]] = [
    {"id": "web-1", "title": "Fix the login form", "prompt": "Fix it.", "priority": 10},
    {"id": "web-2", "name": "Write the page", "size": 3},
    {"id": "web 3/a", "title": "An id that is no name", "project": "default"},
    {"id": "web-4", "title": "Waits", "depends_on": ["web-1"]},
    {"id": "web-5", "title": "Over", "status": "done"},
    {"id": "web-6", "title": "Somebody is at it", "status": "in_progress"},
]


def make(folder: Path) -> Sample:
    """Four open tasks, one of which waits for another; one taken, one closed."""
    file = folder / "tasks.jsonl"

    def write(rows: list[dict[str, object]]) -> None:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def rows() -> list[dict[str, object]]:
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def retitle(item: str, title: str) -> None:
        write([row | {"title": title} if row["id"] == item else row for row in rows()])

    def close(item: str) -> None:
        write([row | {"status": "done"} if row["id"] == item else row for row in rows()])

    def spoil() -> str:
        with file.open("a", encoding="utf-8") as more:
            more.write("{no JSON\n")
        return f"tasks.jsonl:{len(LINES) + 1}"

    write(LINES)
    return Sample(Where(file), ("web-1", "web-2", "web 3/a"), retitle, close, spoil)
