"""A daemon compacts thousands of tasks, and leases meanwhile; its log shows the order."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from fairlane.app import STORE_FILE
from fairlane.engine import compaction
from fairlane.model.event import Event
from fairlane.model.instant import DAY
from fairlane.model.task import Attempt, Status, Task
from fairlane.store.base import Placed
from tests.daemon.world import World, until

pytestmark = pytest.mark.slow
OLD, CHAIN = 3_000, 10


def fill(world: World) -> None:
    """Tasks that ended long ago, each with an attempt and events; a compaction is due."""
    with world.context() as context, context.store.write() as tx:
        now = context.now()
        first, fence = tx.number("seq", OLD), tx.number("fence", OLD)
        then = now - 60 * DAY
        tasks = [
            Task(f"old{n}", first + n, status=Status.DONE, ended_at=then + n, attempts=1)
            for n in range(OLD)
        ]
        tx.insert([Placed(task) for task in tasks])
        tx.put_attempts([
            Attempt(
                f"old-lease{n}", task.id, "default", "code", None, 1, fence + n, "w", then, then,
                ended_at=then + n, outcome="succeeded",
            )
            for n, task in enumerate(tasks)
        ])  # fmt: skip
        tx.log([Event(0, then, kind, task.id) for task in tasks for kind in ("leased", "done")])
        tx.put_value("compacted_at", now - 2 * DAY)


#: Notes in the file itself what is committed, in its order.
NOTED = """
CREATE TABLE noted (number INTEGER PRIMARY KEY, what TEXT);
CREATE TRIGGER part AFTER INSERT ON key_values WHEN NEW.name = 'compacting'
    BEGIN INSERT INTO noted (what) VALUES ('part'); END;
CREATE TRIGGER lease AFTER INSERT ON attempts WHEN NEW.ended_at IS NULL
    BEGIN INSERT INTO noted (what) VALUES ('lease'); END;
"""


def test_leases_are_committed_between_two_parts_of_a_compaction(world: World) -> None:
    """Each task needs the one before it, so the daemon leases one after the other."""
    fill(world)
    world.add(*[
        {"id": f"t{n}", "command": ["true"], "needs": [f"t{n - 1}"] if n else []}
        for n in range(CHAIN)
    ])  # fmt: skip
    with closing(sqlite3.connect(world.home / STORE_FILE)) as store:
        store.executescript(NOTED)
    world.up()
    until(lambda: world.statuses()[f"t{CHAIN - 1}"] == "done")
    until(lambda: compacted(world))
    with closing(sqlite3.connect(world.home / STORE_FILE)) as store:
        order = [what for (what,) in store.execute("SELECT what FROM noted ORDER BY number")]
    assert order.count("lease") == CHAIN
    parts = [at for at, what in enumerate(order) if what == "part"]
    assert len(parts) >= OLD // compaction.PART
    assert "lease" in order[parts[0] : parts[-1]], order
    assert [event["tasks"] for event in compacted(world)] == [OLD]
    assert world.sound()


def compacted(world: World) -> list[dict[str, Any]]:
    """What the log tells of compactions that are through."""
    with world.context() as context, context.store.read() as reading:
        return [dict(event.data) for event in reading.events(kind="compacted")]
