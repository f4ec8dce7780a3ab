"""History costs what is asked of it: neither sums nor compaction read what lies before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlane.clock import FixedClock
from fairlane.engine import compaction
from fairlane.engine.context import Context
from fairlane.model.instant import DAY, HOUR, MINUTE
from fairlane.model.task import Status, Task
from fairlane.service.reports import stats, summary
from fairlane.settings import Settings
from fairlane.store.base import Booking, Placed
from fairlane.store.sqlite.store import SqliteStore
from tests.properties.test_rows_read import LARGE, NOW, SMALL, TOLERANCE, steps

pytestmark = pytest.mark.slow
SCOPES = ("all", "project:a", "project:b", "project:default", "pool:x", "group:g")
#: Of what is not compacted yet, and of what was booked in the window.
OLD, WINDOW = 2_000, 60


def fill(store: SqliteStore, count: int) -> None:
    """Years of usage by days, an hour by minutes; tasks that were compacted, and old ones."""
    usage = [
        Booking(scope, NOW - (n + 40) * DAY, (1, 1, 1, 1), 1, 1, 1)
        for scope in SCOPES for n in range(count // len(SCOPES))
    ]  # fmt: skip
    usage += [
        Booking(scope, NOW - n * MINUTE, (1, 1, 1, 1), 1, 1, 1)
        for scope in SCOPES for n in range(WINDOW)
    ]  # fmt: skip
    gone = [_ended(n, NOW - 400 * DAY + n, meta={"compacted": True}) for n in range(1, count)]
    old = [_ended(count + n, NOW - 50 * DAY + n, prompt="p") for n in range(OLD)]
    with store.write() as tx:
        tx.number("seq", count + OLD)
        tx.insert([*gone, *old])
        tx.book(usage)
        tx.put_value("compacted_at", NOW - DAY)


def _ended(seq: int, at: int, **said: Any) -> Placed:
    return Placed(Task(f"t{seq}", seq, status=Status.DONE, created_at=0, ended_at=at, **said))


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory):
    found = []
    for count in (SMALL, LARGE):
        home = tmp_path_factory.mktemp(f"history{count}")
        store = SqliteStore.open(home / "fairlane.db")
        store.connection.execute("PRAGMA synchronous = OFF")
        fill(store, count)
        found.append(Context(home, store, Settings(), FixedClock(NOW), "tester"))
    yield found
    for context in found:
        context.store.close()


def sums(prefix: str) -> Callable[[Context], object]:
    def ask(context: Context) -> object:
        with context.store.read() as reading:
            found = reading.usage_sums(prefix, NOW - HOUR)
            assert all(booked.starts == WINDOW for booked in found.values())
            return found

    return ask


DEEDS: dict[str, Callable[[Context], object]] = {
    "sums of projects": sums("project:"),
    "sum of all": sums("all"),
    "stats": lambda context: stats.stats(context, NOW - HOUR),
    "summary": lambda context: summary.summary(context, NOW - HOUR),
    "a part of a compaction": lambda context: compaction.compact(context, lambda: True),
}


def test_nothing_costs_more_after_a_longer_history(contexts, record_property):
    told, more = [], []
    for name, deed in DEEDS.items():
        small, large = (steps(context, deed) for context in contexts)
        told.append(f"{name} {small}/{large}")
        if large > small * TOLERANCE + 50:
            more.append(f"{name}: {small} steps, then {large}")
    assert more == []
    with contexts[1].store.read() as reading:
        assert not reading.tasks([f"t{LARGE}"])[f"t{LARGE}"].prompt
    record_property("told", f"SQLite steps after {SMALL:,} and {LARGE:,} rows: {', '.join(told)}")
