"""A tasks.json with a tag, subtasks, and every status."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample

TASKS: list[dict[str, Any]] = [
    {"id": 1, "title": "Set up the repository", "status": "done", "priority": "high"},
    {
        "id": 2,
        "title": "Write the parser",
        "description": "Reads the file.",
        "details": "By hand, no generator.",
        "testStrategy": "SourceState it every sample.",
        "status": "pending",
        "priority": "critical",
        "dependencies": [1],
        "subtasks": [],
    },
    {"id": "3", "title": "Write the printer", "status": "pending", "dependencies": [1]},
    {"id": 4, "title": "Write the manual", "status": "pending", "priority": "low"},
    {
        "id": 5,
        "title": "Release",
        "status": "pending",
        "dependencies": [2, 3],
        "subtasks": [
            {"id": 1, "title": "Tag it", "status": "pending", "dependencies": []},
            {"id": 2, "title": "Tell everybody", "status": "pending", "dependencies": [1]},
        ],
    },
    {"id": 6, "title": "Somebody is at it", "status": "in-progress"},
    {"id": 7, "title": "Later", "status": "deferred"},
]


def make(folder: Path) -> Sample:
    """Three tasks are free; one is a group of two, one is taken, one deferred, one done."""
    project = folder / "shop"
    file = project / ".taskmaster" / "tasks" / "tasks.json"
    file.parent.mkdir(parents=True)

    def write(tasks: list[dict[str, Any]]) -> None:
        held = {"master": {"tasks": tasks, "metadata": {"description": "all"}}}
        file.write_text(json.dumps(held, indent=2), encoding="utf-8")

    def tasks() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["master"][
            "tasks"
        ]
        return found

    def change(item: str, **values: str) -> None:
        write([task | values if str(task["id"]) == item else task for task in tasks()])

    def spoil() -> str:
        write([*tasks(), {"id": 99, "status": "pending"}])
        return "99"

    def kept() -> bytes:
        return re.sub(rb'"status": "[\w-]+"', b"", file.read_bytes())

    write(TASKS)
    return Sample(
        Where(project),
        ("2", "3", "4"),
        lambda item, title: change(item, title=title),
        lambda item: change(item, status="done"),
        spoil,
        kept=kept,
    )
