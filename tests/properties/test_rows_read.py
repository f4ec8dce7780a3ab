"""A round reads lanes and heads: what it costs does not grow with the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlane.clock import FixedClock
from fairlane.engine.context import Context
from fairlane.model.instant import DAY, SECOND
from fairlane.model.task import Attempt, Status, Task
from fairlane.service import explain, planning, projects, queue, tasks
from fairlane.service.reports.status import status
from fairlane.settings import Settings
from fairlane.store.base import Placed
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
