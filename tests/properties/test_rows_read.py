"""A round reads lanes and heads: what it costs does not grow with the queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlane.clock import FixedClock
from fairlane.model.instant import DAY, SECOND
from fairlane.model.task import Status, Task
from fairlane.service import leases, projects, queue, rounds, tasks, whys
from fairlane.service.desk import Desk
from fairlane.service.reports.status import status
from fairlane.settings import Settings
from fairlane.store.base import Attempt, Placed
from fairlane.store.sqlite.store import SqliteStore

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
def desks(tmp_path_factory):
    found = []
    for count in (SMALL, LARGE):
        home = tmp_path_factory.mktemp(f"home{count}")
        (home / "policy.toml").write_text('caps."all" = 40\n', encoding="utf-8")
        store = SqliteStore.open(home / "fairlane.db")
        store.connection.execute("PRAGMA synchronous = OFF")
        desk = Desk(home, store, Settings(), FixedClock(NOW + SECOND), "tester")
        projects.add_project(desk, "web", {"weight": 2})
        fill(store, count)
        found.append(desk)
    yield found
    for desk in found:
        desk.store.close()


def steps(desk: Desk, deed: Callable[[Desk], object]) -> int:
    """How many steps SQLite takes for a deed, to the nearest ten."""
    assert isinstance(desk.store, SqliteStore)
    taken = 0

    def step() -> None:
        nonlocal taken
        taken += 10

    desk.store.connection.set_progress_handler(step, 10)
    try:
        deed(desk)
    finally:
        desk.store.connection.set_progress_handler(None, 0)
    return taken


def finish(desk: Desk) -> None:
    with desk.store.read() as reading:
        held = [attempt.lease for attempt in reading.open_attempts()]
    leases.complete(desk, held[:5])
    leases.release(desk, held[5], "failed")


DEEDS: dict[str, Callable[[Desk], object]] = {
    "add": lambda desk: tasks.add(desk, [{"project": "web"}, {"priority": 3}]),
    "plan": rounds.plan,
    "lease": lambda desk: leases.lease(desk, worker="w"),
    "lease with a full cap": lambda desk: leases.lease(desk, worker="w"),
    "status": status,
    "why": lambda desk: whys.why(desk, "q7"),
    "heartbeat": lambda desk: leases.heartbeat(desk, _held(desk)),
    "complete and fail": finish,
    "reclaim": leases.reclaim,
    "pause": lambda desk: queue.pause(desk, "kind:code"),
}


def _held(desk: Desk) -> str:
    with desk.store.read() as reading:
        return reading.open_attempts()[0].lease


def test_nothing_costs_more_in_a_longer_queue(desks, record_property):
    told, more = [], []
    for name, deed in DEEDS.items():
        small, large = (steps(desk, deed) for desk in desks)
        told.append(f"{name} {small}/{large}")
        if large > small * TOLERANCE + 50:
            more.append(f"{name}: {small} steps, then {large}")
    assert more == []
    for desk in desks:
        assert desk.store.check() == []
    record_property("told", f"SQLite steps at {SMALL:,} and {LARGE:,} tasks: {', '.join(told)}")


def test_a_deed_that_reads_the_queue_is_found(desks):
    def scan(desk: Desk) -> None:
        assert isinstance(desk.store, SqliteStore)
        desk.store.connection.execute("SELECT sum(priority) FROM tasks").fetchone()

    small, large = (steps(desk, scan) for desk in desks)
    assert large > 5 * small
