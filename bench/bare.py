"""Bare: plain transactions that write the rows that Fairlane writes, and decide nothing."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from bench.peers import PROMPT
from fairlane.store.sqlite.migrate import migrations
from fairlane.store.sqlite.store import statements

if TYPE_CHECKING:
    from pathlib import Path

AT = 1_800_000_000_000_000
MINUTE = AT - AT % 60_000_000
KEY = '["default","code",100,0,0,null,null,null,[],null,[],null]'
LOWER = (
    "UPDATE tallies SET count = count + ? "
    "WHERE status = ? AND wait = ? AND project = ? AND kind = ?"
)
WORKER = '{"name":"w","host":"localhost","seen_at":1800000000000000}'
CYCLE = '{"at":1800000000000000,"picks":1,"reclaims":0,"refused":0,"reason":"ready"}'
RECORD = '{"base":1,"version":2,"count":3,"holds":[],"sizes":[[1,1459]]}'
Blobs = tuple[bytes, bytes, bytes, str]


class Bare:
    """Three transactions a life: the same tables, indexes, rows and durability as ours."""

    def __init__(self, path: Path, record: Blobs) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        self._execute, self._many = self.connection.execute, self.connection.executemany
        self._execute("PRAGMA journal_mode = WAL")
        self._execute("PRAGMA synchronous = FULL")
        self._execute("PRAGMA foreign_keys = ON")
        for _, _, text in migrations():
            self.connection.executescript(text)
        self._sql = statements()
        self._execute(self._sql["add_lane"], (KEY,))
        self._execute(self._sql["put_policies"], ("policy", "{}"))
        self._record = record
        self._last = 0  # task, and fence
        self._events = 0
        self._decisions = 0

    def life(self) -> None:
        """One task: added, leased, completed."""
        self.batch(1)

    def batch(self, count: int) -> None:
        """As many tasks, each of the three steps in one transaction."""
        seqs = range(self._last + 1, self._last + 1 + count)
        self._last += count
        self._add(seqs)
        self._lease(seqs, count)
        self._complete(seqs, count)

    def add(self, rows: list[tuple[Any, ...]], events: list[tuple[Any, ...]]) -> None:
        """Rows of tasks and of their events in one transaction."""
        self._execute("BEGIN IMMEDIATE")
        self._many(self._sql["insert_task"], rows)
        self._many(self._sql["log"], events)
        self._counts("version", "task", "seq", "event")
        self._execute(self._sql["touch_lane"], (len(rows), 1, 1))
        self._execute(self._sql["tally"], ("queued", "", "default", "code", len(rows)))
        self._execute("COMMIT")

    def add_new(self, count: int) -> None:
        """As many new tasks in one transaction."""
        self._add(range(self._last + 1, self._last + 1 + count))
        self._last += count

    def _add(self, seqs: range) -> None:
        rows = [
            (
                seq, f"t{seq}", "default", "code", "queued", 1, "", None, AT, AT, None, None, 100,
                0, 0, 0, None, None, None, None, "{}", "{}", PROMPT,
            )
            for seq in seqs
        ]  # fmt: skip
        self.add(rows, self._log(seqs, "added", '{"by":"someone"}'))

    def _lease(self, seqs: range, count: int) -> None:
        self._execute("BEGIN IMMEDIATE")
        self._counts("version", "event", "fence", "decision")
        self._execute(self._sql["put_workers"], ("w", WORKER))
        self._decisions += 1
        lanes, rest, plan, digests = self._record
        values = (self._decisions, AT, 1, "policy", 1, lanes, rest, plan, digests)
        self._execute(self._sql["put_decision"], values)
        self._execute(self._sql["put_value"], ("decision", RECORD))
        self._execute(self._sql["put_value"], ("last_cycle", CYCLE))
        self._execute(self._sql["put_value"], ("clock", "100000000000"))
        self._execute(self._sql["put_clock"], (100000000000, 1, "default"))
        self._move(seqs, "leased", None)
        said = '{"attempt":1,"fence":1,"lease":"L1","worker":"w","expires_at":1800000000000000}'
        self._many(self._sql["log"], self._log(seqs, "leased", said))
        body = '{"estimate":100000,"charged":100000}'
        self._attempts(seqs, None, None, body)
        self._book(starts=count)
        self._execute(self._sql["touch_lane"], (-count, 1, 1))
        self._tally("leased", "queued", count)
        self._execute("COMMIT")

    def _complete(self, seqs: range, count: int) -> None:
        self._execute("BEGIN IMMEDIATE")
        self._counts("version", "event")
        self._move(seqs, "done", AT)
        said = '{"attempt":1,"fence":1,"detail":"","by":"someone"}'
        self._many(self._sql["log"], self._log(seqs, "succeeded", said))
        self._attempts(seqs, AT, "succeeded", '{"estimate":100000}')
        self._book(completions=count)
        self._execute(self._sql["put_clock"], (0, 1, "default"))
        self._tally("done", "leased", count)
        self._execute("COMMIT")

    def _counts(self, *names: str) -> None:
        self._many(self._sql["put_number"], [(name, self._last + 1) for name in names])

    def _move(self, seqs: range, status: str, ended: int | None) -> None:
        rows = [(status, None, "", None, AT, AT, ended, 0, 1, "{}", seq) for seq in seqs]
        self._many(self._sql["save_task"], rows)

    def _attempts(self, seqs: range, ended: int | None, outcome: str | None, body: str) -> None:
        rows = [
            (
                seq, f"L{seq}", f"t{seq}", "default", "code", None, 1, "w", AT, AT, ended, outcome,
                0, 0, 0, 0, None, body,
            )
            for seq in seqs
        ]  # fmt: skip
        self._many(self._sql["put_attempt"], rows)

    def _log(self, seqs: range, kind: str, data: str) -> list[tuple[Any, ...]]:
        first = self._events + 1
        self._events += len(seqs)
        return [(n, AT, kind, f"t{seq}", "default", data) for n, seq in enumerate(seqs, first)]

    def _book(self, starts: int = 0, completions: int = 0) -> None:
        rows = [
            (scope, MINUTE, 0, 0, 0, 0, 0, starts, completions)
            for scope in ("all", "project:default")
        ]
        self._many(self._sql["book"], rows)

    def _tally(self, more: str, less: str, count: int) -> None:
        self._execute(self._sql["tally"], (more, "", "default", "code", count))
        self._execute(LOWER, (-count, less, "", "default", "code"))

    def close(self) -> None:
        """The file is let go."""
        self.connection.close()
