"""A copy of a store's rows: any store gives it, any store takes it in, and it is the same there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from fairlane.engine.end_attempt import Report
from fairlane.engine.look.planned import preview
from fairlane.model.event import Event
from fairlane.model.instant import MINUTE
from fairlane.service import groups, projects, queue
from fairlane.store.base import Filter, Store
from fairlane.store.copy import Content, read_content, write_content
from fairlane.store.memory.store import MemoryStore
from fairlane.store.sqlite.store import SqliteStore
from tests.unit.contexts import TestContext

VALUES = ("clock", "batch", "readiness", "nothing")


def made(kind: str, folder: Path) -> Store:
    return MemoryStore() if kind == "memory" else SqliteStore.open(folder / f"{kind}.db")


@pytest.fixture(params=permutations(("memory", "sqlite")), ids=" to ".join)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[TestContext, Store]]:
    """A store with something of everything, and an empty one."""
    source, target = (made(kind, tmp_path) for kind in request.param)
    home = TestContext(tmp_path, store=source)
    fill(home)
    yield home, target
    source.close()
    target.close()


def fill(home: TestContext) -> None:
    projects.add_project(home.context, "web", {"weight": 3, "budgets": [{"tokens": 900_000}]})
    groups.add_group(home.context, "top", priority=5)
    groups.add_group(home.context, "part", parent="top")
    home.add(
        *(
            {"id": f"t{number}", "project": "web", "group": "part", "parallel": True}
            for number in range(4)
        )
    )
    home.add(
        {"id": "needs", "needs": ["t0", "t1"]}, {"id": "late", "not_before": "2026-02-01T00:00:00Z"}
    )
    queue.pause(home.context, "kind:plan", "not now")
    first, second, third, _ = home.lease(4)
    home.wait(MINUTE)
    home.complete(first["lease"], Report((1, 2, 3, 4), 50_000))
    home.fail(second["lease"])
    home.fail(third["lease"], outcome="throttled")


def everything(store: Store) -> Content:
    with store.read() as reading:
        names = [placed.task.id for placed in reading.listing(Filter())]
        return read_content(reading, names, VALUES)


def test_it_is_the_same_there(stores):
    home, target = stores
    content = everything(home.context.store)
    with target.write() as tx:
        write_content(tx, content)
    assert everything(target) == content
    assert target.check() == []
    assert len(content.attempts) == 4
    assert {placed.wait for placed in content.tasks} == {"", "backoff", "needs", "not_before"}
    copy = TestContext(home.context.home, store=target)
    copy.clock.at = home.clock.at
    plans = []
    for context in (home.context, copy.context):
        with context.store.read() as reading:
            snapshot, plan, _ = preview(context, reading)
            plans.append(
                (plan, snapshot.lanes, snapshot.wait_counts, snapshot.in_flight, snapshot.usage)
            )
    assert plans[0] == plans[1]


def test_a_part_of_it(stores):
    home, target = stores
    with home.context.store.read() as reading:
        content = read_content(reading, ["t0", "needs", "nobody", "t0"])
    assert [placed.task.id for placed in content.tasks] == ["t0", "needs"]
    assert [attempt.task for attempt in content.attempts] == ["t0"]
    with target.write() as tx:
        write_content(tx, content)
    with target.read() as reading:
        assert reading.task("t1") is None
        assert reading.dependents("t0") == ["needs"]


def test_numbers_go_on_after_what_was_copied(stores):
    home, target = stores
    content = everything(home.context.store)
    with target.write() as tx:
        write_content(tx, content)
        assert tx.number("seq") == max(placed.task.seq for placed in content.tasks) + 1
        assert tx.number("fence") == max(attempt.fence for attempt in content.attempts) + 1
        tx.log([Event(0, 1, "added")])


def test_nothing_can_be_copied(tmp_path):
    store, target = MemoryStore(), MemoryStore()
    with store.read() as reading, target.write() as tx:
        write_content(tx, read_content(reading, ()))
        assert tx.listing(Filter()) == []
