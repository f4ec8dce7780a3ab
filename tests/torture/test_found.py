"""What torture has found, each as a small story."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.clock import FixedClock
from fairlane.engine.context import Context
from fairlane.model.instant import SECOND
from fairlane.service import groups, tasks
from fairlane.settings import Settings
from fairlane.store.memory.store import MemoryStore
from fairlane.testing.torture import History, replay
from tests import holder


@pytest.fixture
def office(tmp_path: Path) -> Context:
    return Context(tmp_path, MemoryStore(), Settings(), FixedClock(1000 * SECOND), "ann")


def events(office: Context, kind: str) -> list[dict[str, object]]:
    with office.store.read() as reading:
        return [dict(event.data) for event in reading.events() if event.kind == kind]


def test_a_group_is_done_when_the_last_task_of_a_group_under_it_is_canceled(office: Context):
    """Nothing of the lower group was done, so the search for done groups ended there."""
    groups.add_group(office, "above")
    groups.add_group(office, "below", parent="above")
    tasks.add(office, [{"id": "a", "prompt": "go", "group": "above"}])
    tasks.add(
        office,
        [{"id": "b", "prompt": "go", "group": "below", "not_before": "2030-01-01T00:00:00Z"}],
    )
    lease = holder.lease(office)["leases"][0]["lease"]
    holder.complete(office, [lease])
    assert events(office, "group_done") == []
    tasks.cancel(office, ["b"])
    assert [row["group"] for row in events(office, "group_done")] == ["above"]


def test_a_memory_store_wakes_nobody_when_nothing_was_written():
    """Two daemons woke each other for ever: each round opens a transaction, to write or not."""
    store = MemoryStore()
    other = MemoryStore(beside=store)
    with store.write():
        pass
    assert other.stamp() == 0
    with store.write() as tx:
        tx.put_value("x", 1)
    assert other.stamp() == 1
    other.close()
    with store.write() as tx:
        tx.put_value("x", 2)
    assert other.stamp() == 1


def test_what_was_ready_by_its_time_stays_so_when_a_clock_is_set_back():
    task = {"id": "t9", "prompt": "go", "not_before": "2026-01-31T10:01:58.250Z", "group": "g"}
    choices = (
        ("let_pass", 97200.0),
        ("ask", "ann-1", "b", "add", {"tasks": [task]}),
        ("let_pass", 200.0),
        ("settle", 400),
        ("clock", "store", -7200.0, 1.0),
        ("ask", "ann-2", "a", "group_set", {"name": "g", "values": {"priority": 61}}),
        ("settle", 400),
    )
    assert replay(History(seed=112, choices=choices)).broken is None
