"""Homes of cool-workflow, made at random, and what its scheduler does next.

`Sched` is written from its document: an order, a hard ceiling, leases, computed backoff, parking.
Times are whole milliseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from fairlane.model.instant import parse_instant, to_datetime

MS = 1000  # microseconds
DEFAULTS = {
    "maxConcurrent": 1, "maxAttempts": 3, "leaseTtlMs": 300_000, "backoffBaseMs": 1000,
    "backoffFactor": 2, "backoffCapMs": 60_000,
}  # fmt: skip
TERMINAL = ("drained", "cancelled")


@dataclass
class Entry:
    """One entry of the queue, as the scheduler sees it."""

    id: str
    priority: int
    enqueued: int
    status: str
    attempts: int = 0
    expires: int | None = None
    eligible: int | None = None

    @property
    def place(self) -> tuple[int, int, str]:
        return (self.priority, self.enqueued, self.id)


@dataclass
class Sched:
    """`sched plan`, `lease`, `complete`, `release`, `reclaim` and `reset` with an injected now."""

    policy: dict[str, Any]
    entries: dict[str, Entry] = field(default_factory=dict)

    def plan(self, now: int) -> tuple[list[str], dict[str, str]]:
        """What would be leased, in order, and why the rest would not."""
        flying = sum(entry.status == "leased" for entry in self.entries.values())
        room = max(0, self.policy["maxConcurrent"] - flying)
        leases: list[str] = []
        skipped: dict[str, str] = {}
        for entry in sorted(self.entries.values(), key=lambda entry: entry.place):
            if entry.status in TERMINAL:
                skipped[entry.id] = "terminal"
            elif entry.status in ("leased", "parked"):
                skipped[entry.id] = entry.status
            elif entry.eligible is not None and entry.eligible > now:
                skipped[entry.id] = "backoff"
            elif len(leases) >= room:
                skipped[entry.id] = "concurrency-ceiling"
            else:
                leases.append(entry.id)
        return leases, skipped

    def lease(self, now: int, limit: int) -> list[str]:
        taken = self.plan(now)[0][:limit]
        for name in taken:
            entry = self.entries[name]
            entry.status, entry.expires = "leased", now + self.policy["leaseTtlMs"] * MS
        return taken

    def complete(self, name: str) -> None:
        self.entries[name].status = "drained"

    def fail(self, name: str, now: int) -> None:
        """A failed release, or a lease that expired: backoff, or parked past the budget."""
        entry, policy = self.entries[name], self.policy
        entry.attempts += 1
        entry.expires = entry.eligible = None
        if entry.attempts >= policy["maxAttempts"]:
            entry.status = "parked"
            return
        wait = policy["backoffBaseMs"] * Fraction(policy["backoffFactor"]) ** (entry.attempts - 1)
        entry.status = "ready"
        entry.eligible = now + int(min(wait, policy["backoffCapMs"]) * MS)

    def reclaim(self, now: int) -> list[str]:
        late = [
            entry.id
            for entry in self.entries.values()
            if entry.status == "leased" and entry.expires is not None and entry.expires <= now
        ]
        for name in late:
            self.fail(name, now)
        return late

    def reset(self, name: str) -> None:
        entry = self.entries[name]
        entry.status, entry.attempts, entry.eligible = "ready", 0, None


def moment(when: int) -> str:
    """As it writes times; those without a fraction appear in files that people edited."""
    text = to_datetime(when).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return text.replace(".000Z", "Z") if when % (7 * MS) == 0 else text


class Registry:
    """A folder `registry` and the scheduler that owns it."""

    def __init__(self, folder: Path, seed: int, now: str = "2026-01-30T12:00:00Z") -> None:
        self.folder, self.random, self.now = folder, Random(seed), parse_instant(now)
        self.bad: list[str] = []  # entries that cannot be taken over
        folder.mkdir(parents=True, exist_ok=True)
        self.sched = Sched(self._policy())
        self.rows: list[Any] = [self._row(at) for at in range(self.random.randint(0, 25))]
        self.random.shuffle(self.rows)
        self._write()

    def _policy(self) -> dict[str, Any]:
        """The file, some of its keys, or none at all."""
        draw = self.random
        given = {
            "maxConcurrent": draw.randint(0, 5), "maxAttempts": draw.randint(1, 4),
            "leaseTtlMs": draw.choice((1500, 5000, 300_000)),
            "backoffBaseMs": draw.choice((0, 250, 1000)), "backoffFactor": draw.choice((1, 1.5, 2)),
            "backoffCapMs": draw.choice((1000, 3333, 60_000)),
        }  # fmt: skip
        kept = {key: value for key, value in given.items() if draw.random() < 0.8}
        if draw.random() < 0.85:
            text = json.dumps({"schemaVersion": 1, **kept}, indent=2)
            (self.folder / "scheduling-policy.json").write_bytes(self._lines(text))
            return DEFAULTS | kept
        return dict(DEFAULTS)

    def _row(self, at: int) -> Any:
        draw = self.random
        if draw.random() < 0.06:
            self.bad.append(f"bad-{at}")
            wrong = {"schemaVersion": 2}, {"status": "lost"}, {"attempts": -1}, {"enqueuedAt": "x"}
            return {"id": f"bad-{at}", "status": "pending", **draw.choice(wrong)}
        status = draw.choice(
            ("pending", "ready", "ready", "parked", "drained", "cancelled", "leased")
        )
        # Few priorities and few instants, so that the later keys of the order decide too.
        enqueued = self.now - draw.randint(0, 6) * 1_500_000
        entry = Entry(
            f"q-20260130-{draw.randint(0, 9)}{at:03}", draw.choice((10, 100)), enqueued, status
        )
        row: dict[str, Any] = {"id": entry.id, "enqueuedAt": moment(enqueued), "status": status}
        row["repo"] = draw.choice(("/srv/site", "größe/ß", "a b"))
        if entry.priority != 100 or draw.random() < 0.5:
            row["priority"] = entry.priority
        if draw.random() < 0.6:  # since 0.1.37
            row["attempts"] = entry.attempts = draw.randint(0, 4)
        if status == "ready" and draw.random() < 0.4:
            entry.eligible = self.now + draw.randint(-3, 3) * 1_000_000
            row["nextEligibleAt"] = moment(entry.eligible)
        if status == "parked":
            row["parkedReason"] = "exit 1 — zu oft"
        if draw.random() < 0.3:
            row |= {"appId": "site", "workflowId": "fix", "runId": f"r{at}", "inputs": {"ü": [at]}}
        self.sched.entries[entry.id] = entry
        if status == "leased":  # by somebody who is gone
            expired = self.now - draw.choice((0, 200, 5000)) * MS
            row |= {"leaseId": "lost", "leaseExpiresAt": moment(expired)}
            self.sched.fail(entry.id, expired)
        return row

    def _write(self) -> None:
        text = json.dumps({"schemaVersion": 1, "entries": self.rows}, indent=2, ensure_ascii=False)
        (self.folder / "queue.json").write_bytes(self._lines(text))

    def _lines(self, text: str) -> bytes:
        mark, ends = self.random.choice(("", "\ufeff")), self.random.choice(("\n", "\r\n"))
        return (mark + text.replace("\n", ends) + ends).encode()
