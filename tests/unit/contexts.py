"""A context on a store, in memory unless told, with a clock that stands still until it is moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlane.clock import FixedClock
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Report
from fairlane.model.documents.tasks import AddedDocument
from fairlane.model.instant import Micros, parse_instant
from fairlane.service import tasks
from fairlane.settings import Settings
from fairlane.store.base import Store
from fairlane.store.memory.store import MemoryStore
from tests import holder


def hold_code(document) -> str:
    """The code of what holds a task, as its document has it."""
    code: str = document["hold"]["code"]
    return code


NOON = parse_instant("2026-01-30T12:00:00Z")


class TestContext:
    """What tests of operations share."""

    __test__ = False

    def __init__(
        self, home: Path, settings: dict[str, Any] | None = None, store: Store | None = None
    ) -> None:
        self.clock = FixedClock(NOON)
        parsed = Settings.parse({"worker": {"name": "box"}} | (settings or {}))
        self.context = Context(home, store or MemoryStore(), parsed, self.clock, "ann")

    def policy(self, text: str) -> None:
        """Write the policy file."""
        self.context.policy_file.write_text(text, encoding="utf-8")

    def wait(self, length: Micros) -> None:
        """Time passes."""
        self.clock.at += length

    def add(self, *records: dict[str, Any], **options: Any) -> list[AddedDocument]:
        """Add tasks; what the answer says of each."""
        return tasks.add(self.context, records, **options)["tasks"]

    def lease(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Lease what may start."""
        return [dict(lease) for lease in holder.lease(self.context, limit, "box")["leases"]]

    def finish(self, lease: str, output: int = 0, usd: int | None = None) -> None:
        """An attempt succeeds."""
        holder.complete(self.context, [lease], Report((0, output, 0, 0), usd))

    def complete(self, lease: str, report: Report) -> None:
        """An attempt succeeds, with this report."""
        holder.complete(self.context, [lease], report)

    def fail(self, lease: str, detail: str = "exit 1", outcome: str = "failed") -> None:
        """An attempt ends otherwise."""
        holder.release(self.context, lease, outcome, Report(detail=detail))

    def status_of(self, *ids: str) -> list[str]:
        """The stored statuses."""
        with self.context.store.read() as reading:
            found = reading.statuses(ids)
        return [str(found[name]) for name in ids]

    def count(self) -> int:
        """How many tasks there are."""
        with self.context.store.read() as reading:
            return sum(tally.count for tally in reading.tallies())
