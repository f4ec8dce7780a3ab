"""A round reads lanes and heads, a sum its window: costs grow neither with queue nor history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlane.clock import FixedClock
from fairlane.engine import compaction
from fairlane.engine.context import Context
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND
from fairlane.model.task import Attempt, Status, Task
from fairlane.service import explain, planning, projects, queue, tasks
from fairlane.service.reports import stats, summary
from fairlane.service.reports.status import status
from fairlane.settings import Settings
from fairlane.store.base import Booking, Placed
from fairlane.store.sqlite.store import SqliteStore
from tests import holder

pytestmark = pytest.mark.slow
NOW = 20_000 * DAY
LANES = 12
#: In the smaller one a lane is longer than any window of it that is read.
SMALL, LARGE = 15_000, 100_000
#: The same work may take a few steps more: a longer number, another page.
TOLERANCE = 1.02


def fill(store: SqliteStore, count: int) -> None:
    """Ready tasks in lanes, others that wait, and as many that are done, with their attempts."""
    rows, attempts = [], []
    for seq in range(1, count + 1):
        lane = seq % LANES
        told: dict[str, Any] = {"project": "default", "kind": ("code", "review")[lane % 2]}
        task = Task(f"q{seq}", seq, priority=lane, created_at=NOW - seq, ready_since=NOW, **told)
        rows.append(Placed(task))
    for seq in range(count + 1, 2 * count + 1):
        task = Task(f"d{seq}", seq, status=Status.DONE, ended_at=NOW - seq, attempts=1)
        rows.append(Placed(task))
        attempts.append(
            Attempt(
                f"L{seq}", task.id, "default", "code", None, 1, seq, "w", NOW - 9, NOW,
                ended_at=NOW - seq, outcome="succeeded", tokens=(5, 5, 0, 0),
            )
        )  # fmt: skip
    waiting = range(2 * count + 1, 2 * count + count // 2)
    rows += [Placed(Task(f"w{seq}", seq, needs=("q1",)), "needs") for seq in waiting]
    with store.write() as tx:
        tx.number("seq", 3 * count)
        tx.number("fence", 2 * count + 1)
        tx.insert(rows)
        tx.put_attempts(attempts)


@pytest.fixture(scope="module")
def contexts(tmp_path_factory):
    found = []
    for count in (SMALL, LARGE):
        home = tmp_path_factory.mktemp(f"home{count}")
        (home / "policy.toml").write_text('caps."all" = 40\n', encoding="utf-8")
        store = SqliteStore.open(home / "fairlane.db")
        store.connection.execute("PRAGMA synchronous = OFF")
        context = Context(home, store, Settings(), FixedClock(NOW + SECOND), "tester")
        projects.add_project(context, "web", {"weight": 2})
        fill(store, count)
        found.append(context)
    yield found
    for context in found:
        context.store.close()


def steps(context: Context, deed: Callable[[Context], object]) -> int:
    """How many steps SQLite takes for a deed, to the nearest ten."""
    assert isinstance(context.store, SqliteStore)
    taken = 0

    def step() -> None:
        nonlocal taken
        taken += 10

    context.store.connection.set_progress_handler(step, 10)
    try:
        deed(context)
    finally:
        context.store.connection.set_progress_handler(None, 0)
    return taken


def finish(context: Context) -> None:
    with context.store.read() as reading:
        held = [attempt.lease for attempt in reading.open_attempts()]
    holder.complete(context, held[:5])
    holder.release(context, held[5], "failed")


DEEDS: dict[str, Callable[[Context], object]] = {
    "add": lambda context: tasks.add(context, [{"project": "web"}, {"priority": 3}]),
    "plan": planning.plan,
    "lease": lambda context: holder.lease(context, worker="w"),
    "lease with a full cap": lambda context: holder.lease(context, worker="w"),
    "status": status,
    "why": lambda context: explain.why(context, "q7"),
    "heartbeat": lambda context: holder.heartbeat(context, _held(context)),
    "complete and fail": finish,
    "reclaim": holder.reclaim,
    "pause": lambda context: queue.pause(context, "kind:code"),
}


def _held(context: Context) -> str:
    with context.store.read() as reading:
        return reading.open_attempts()[0].lease


def test_nothing_costs_more_in_a_longer_queue(contexts, record_property):
    told, more = [], []
    for name, deed in DEEDS.items():
        small, large = (steps(context, deed) for context in contexts)
        told.append(f"{name} {small}/{large}")
        if large > small * TOLERANCE + 50:
            more.append(f"{name}: {small} steps, then {large}")
    assert more == []
    for context in contexts:
        assert context.store.check() == []
    record_property("told", f"SQLite steps at {SMALL:,} and {LARGE:,} tasks: {', '.join(told)}")


def test_a_deed_that_reads_the_queue_is_found(contexts):
    def scan(context: Context) -> None:
        assert isinstance(context.store, SqliteStore)
        context.store.connection.execute("SELECT sum(priority) FROM tasks").fetchone()

    small, large = (steps(context, scan) for context in contexts)
    assert large > 5 * small


# What lies behind: neither sums nor compaction read all of it.

SCOPES = ("all", "project:a", "project:b", "project:default", "pool:x", "group:g")
#: Of what is not compacted yet, and of what was booked in the window.
OLD, WINDOW = 2_000, 60


def fill_history(store: SqliteStore, count: int) -> None:
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
def histories(tmp_path_factory: pytest.TempPathFactory):
    found = []
    for count in (SMALL, LARGE):
        home = tmp_path_factory.mktemp(f"history{count}")
        store = SqliteStore.open(home / "fairlane.db")
        store.connection.execute("PRAGMA synchronous = OFF")
        fill_history(store, count)
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


HISTORY_DEEDS: dict[str, Callable[[Context], object]] = {
    "sums of projects": sums("project:"),
    "sum of all": sums("all"),
    "stats": lambda context: stats.stats(context, NOW - HOUR),
    "summary": lambda context: summary.summary(context, NOW - HOUR),
    "a part of a compaction": lambda context: compaction.compact(context, lambda: True),
}


def test_nothing_costs_more_after_a_longer_history(histories, record_property):
    told, more = [], []
    for name, deed in HISTORY_DEEDS.items():
        small, large = (steps(context, deed) for context in histories)
        told.append(f"{name} {small}/{large}")
        if large > small * TOLERANCE + 50:
            more.append(f"{name}: {small} steps, then {large}")
    assert more == []
    with histories[1].store.read() as reading:
        assert not reading.tasks([f"t{LARGE}"])[f"t{LARGE}"].prompt
    record_property("told", f"SQLite steps after {SMALL:,} and {LARGE:,} rows: {', '.join(told)}")
