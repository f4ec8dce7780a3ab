"""A world in a home folder, and the deeds that are killed in it; time stands still."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fairlane.app import STORE_FILE, open_context
from fairlane.clock import FixedClock
from fairlane.engine import compaction
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Report
from fairlane.model.errors import NotFound
from fairlane.model.instant import DAY, MINUTE, SECOND, Instant
from fairlane.service import projects, queue, tasks
from fairlane.store.sqlite import migrate
from fairlane.store.sqlite.migrate import migrations
from fairlane.store.sqlite.store import SqliteStore
from tests import holder

#: When the world begins, and when deeds are done in it: everything old has expired by then.
START: Instant = 20_000 * DAY
NOW = START + 40 * DAY
POLICY = """
preset = "balanced"
caps."all" = 3
caps."kind:review" = 1
retry.base = "10s"
[[budget]]
scope = "all"
tokens = 100000000
"""
#: A schema that does not exist yet: a column, a table, an index, and rows that are rewritten.
NEXT = """
CREATE TABLE tomorrow (name TEXT PRIMARY KEY, task INTEGER REFERENCES tasks (seq)) WITHOUT ROWID;
ALTER TABLE groups ADD COLUMN note TEXT;
INSERT INTO tomorrow (name, task) SELECT id, seq FROM tasks;
UPDATE groups SET note = name;
CREATE INDEX groups_note ON groups (note);
"""


def context_at(home: Path, now: Instant) -> Context:
    """A context on a home in which it is this time."""
    return open_context(home, clock=FixedClock(now))


def build(home: Path) -> None:
    """Finished work, work in flight of which one lease has run out, and work that waits."""
    home.mkdir()
    (home / "policy.toml").write_text(POLICY, encoding="utf-8")
    context = context_at(home, START)
    clock = context.clock
    assert isinstance(clock, FixedClock)
    projects.add_project(context, "web", {"weight": 3})
    tasks.add(context, [{"id": f"old{n}", "prompt": "p", "project": "web"} for n in range(3)])
    for held in holder.lease(context, worker="w1")["leases"]:
        holder.complete(context, [held["lease"]], Report(tokens=(100, 10, 0, 5), usd=12))
        clock.at += SECOND
    clock.at = NOW - 5 * MINUTE
    tasks.add(context, [{"id": "lost", "priority": 1, "locks": ["db"]}])
    holder.lease(context, worker="w1")
    clock.at = NOW - MINUTE
    tasks.add(context, [{"id": "held", "priority": 2}, {"id": "then", "needs": ["held", "old0"]}])
    tasks.add(context, [{"id": "later", "not_before": "2024-01-01T00:00:00Z"}])
    holder.lease(context, limit=1, worker="w2")
    review: dict[str, Any] = {"kind": "review", "group": "g", "project": "web"}
    tasks.add(context, [review, {"locks": ["db"]}, {}, {}, {}])
    queue.pause(context, "kind:spec")
    context.store.close()


def first_use(home: Path) -> Any:
    """A store is made where there was none."""
    SqliteStore.open(home / STORE_FILE).close()
    return "made"


def upgrade(home: Path) -> Any:
    """A store of an older schema is used by a newer program."""
    both = (*migrations(), (9001, "9001_tomorrow", NEXT))
    said: list[str] = []
    with patch.multiple(migrate, migrations=lambda: both, SCHEMA=9001):
        SqliteStore.open(home / STORE_FILE, say=said.append).close()
    return said


def _at_context(deed: Callable[[Context], Any]) -> Callable[[Path], Any]:
    def done(home: Path) -> Any:
        context = context_at(home, NOW)
        try:
            return deed(context)
        finally:
            context.store.close()

    return done


def _add(context: Context) -> Any:
    records: list[dict[str, Any]] = [
        {"id": "new1", "prompt": "é" * 5000, "group": "fresh"},
        {"id": "new2", "needs": ["new1", "held"], "parent": "old1"},
        {"id": "new3", "project": "web", "kind": "review", "locks": ["db", "x"]},
    ]
    return tasks.add(context, records)


def _complete(context: Context) -> Any:
    return holder.complete(
        context, [_lease_of(context, "held")], Report(tokens=(9, 9, 9, 9), usd=7)
    )


def _several_at_once(context: Context) -> Any:
    """Calls that came together: one commit for all of them, though one is refused."""
    with context.store.sharing():
        done = _complete(context)
        try:
            tasks.cancel(context, ["nobody"])
        except NotFound as error:
            refused = error.error_code
        return [done, refused, _add(context), holder.lease(context, worker="w3")]


def _fail(context: Context) -> Any:
    return holder.release(
        context, _lease_of(context, "held"), "failed", Report(tokens=(1, 1, 1, 1))
    )


def _report(context: Context) -> Any:
    return holder.report(
        context, _lease_of(context, "held"), Report(tokens=(7, 0, 0, 0)), note="half"
    )


def _lease_of(context: Context, task: str) -> str:
    with context.store.read() as reading:
        return reading.attempts(task)[-1].lease


DEEDS: dict[str, Callable[[Path], Any]] = {
    "first use": first_use,
    "migrate": upgrade,
    "add": _at_context(_add),
    "lease": _at_context(lambda context: holder.lease(context, worker="w3")),
    "report": _at_context(_report),
    "complete": _at_context(_complete),
    "fail": _at_context(_fail),
    "several at once": _at_context(_several_at_once),
    "reclaim": _at_context(holder.reclaim),
    "cancel": _at_context(lambda context: tasks.cancel(context, ["held", "then"])),
    "clear": _at_context(queue.clear),
    "compact": _at_context(compaction.compact),
}


def _careless(context: Context) -> Any:
    """What no deed may be: two transactions for one promise."""
    return [tasks.add(context, [{"id": name}]) for name in ("one", "other")]


def _compact_in_parts(context: Context) -> Any:
    """Two rows a transaction."""
    with patch.object(compaction, "PART", 2):
        return compaction.compact(context)


EVERY = DEEDS | {
    "careless": _at_context(_careless),
    "compact in parts": _at_context(_compact_in_parts),
}


def content(file: Path) -> str:
    """Everything that a file keeps, as one digest; files that are not there keep nothing."""
    if not file.exists():
        return ""
    connection = sqlite3.connect(file)
    try:
        marks = [connection.execute(f"PRAGMA {name}").fetchone() for name in _MARKS]
        lines = "\n".join(connection.iterdump()) + str(marks)
    finally:
        connection.close()
    empty = "CREATE" not in lines
    return "" if empty else hashlib.sha256(lines.encode()).hexdigest()


_MARKS = ("user_version", "application_id")
