"""A queue of cool-workflow: entries of before its scheduler, and of after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample

OLD = {
    "schemaVersion": 1,
    "id": "q-20260130080000-001",
    "appId": "site",
    "repo": "/srv/site",
    "priority": 50,
    "enqueuedAt": "2026-01-30T08:00:00.000Z",
    "status": "pending",
    "inputs": {"page": "login"},
    "colour": "blue",
}
ENTRIES = [
    OLD,
    OLD | {"id": "q-20260130080000-002", "status": "ready", "attempts": 1, "workflowId": "fix"},
    OLD | {"id": "q-20260130080000-003", "note": "Write the page."},
    OLD | {"id": "q-20260130080000-004", "status": "parked", "parkedReason": "exit 1"},
    OLD | {"id": "q-20260130080000-005", "status": "leased", "leaseId": "x"},
    OLD | {"id": "q-20260130080000-006", "status": "drained"},
]
#: What telling may change.
TOLD = ("status", "attempts", "leaseId", "leaseExpiresAt", "nextEligibleAt", "parkedReason",
        "drainedAt")  # fmt: skip


def make(folder: Path) -> Sample:
    """Three entries that may be taken, one parked, one leased, one over."""
    file = folder / "queue.json"

    def write(entries: list[dict[str, Any]]) -> None:
        document = {"schemaVersion": 1, "entries": entries}
        file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    def entries() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["entries"]
        return found

    def change(item: str, **values: object) -> None:
        write([each | values if each["id"] == item else each for each in entries()])

    def spoil() -> str:
        write([*entries(), OLD | {"id": "q-broken", "status": "lost in space"}])
        return "q-broken"

    def kept() -> bytes:
        rest = [{key: each[key] for key in each if key not in TOLD} for each in entries()]
        return json.dumps(rest).encode()

    write(ENTRIES)
    return Sample(
        Where(file),
        tuple(str(entry["id"]) for entry in ENTRIES[:3]),
        lambda item, title: change(item, workflowId=title),
        lambda item: change(item, status="cancelled"),
        spoil,
        kept=kept,
    )
