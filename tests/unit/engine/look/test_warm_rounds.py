"""What a lease and a completion cost: it follows what has changed, not what is in flight."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fairlane.model.project import Project
from fairlane.store.sqlite.store import SqliteStore
from tests.unit.contexts import TestContext


@contextmanager
def counted(store: SqliteStore) -> Iterator[Counter[str]]:
    """The statements and steps that SQLite takes for what is done in this block."""
    counts: Counter[str] = Counter()

    def step() -> int:
        counts["steps"] += 1
        return 0

    store.connection.set_progress_handler(step, 1)
    store.connection.set_trace_callback(lambda statement: counts.update(["statements"]))
    yield counts
    store.connection.set_trace_callback(None)
    store.connection.set_progress_handler(None, 0)


def one_life(in_flight: int, by_another: bool = False) -> Counter[str]:
    """What one lease and its completion cost, with so many others in flight in 20 projects."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fairlane.db"
        with closing(SqliteStore.open(path)) as store, closing(SqliteStore.open(path)) as other:
            for each in (store, other):
                each.connection.execute("PRAGMA synchronous = OFF")
            one = TestContext(Path(folder), {}, store)
            two = TestContext(Path(folder), {}, other)
            one.policy("caps.all = 5000\n")
            with store.write() as tx:
                tx.put(*(Project(f"p{n}", clock=0) for n in range(20)))
            one.add(*({"project": f"p{n % 20}"} for n in range(in_flight + 200)))
            assert len(one.lease(in_flight)) == in_flight
            for _ in range(2):  # both have looked before
                for context in (one, two):
                    context.finish(context.lease(1)[0]["lease"])
            with counted(store) as counts:
                for _ in range(3):
                    if by_another:
                        two.finish(two.lease(1)[0]["lease"])
                    one.finish(one.lease(1)[0]["lease"])
            return counts


def alike(few: Counter[str], many: Counter[str]) -> bool:
    """The same, but for the depth of indexes."""
    return few["statements"] == many["statements"] and many["steps"] <= 1.1 * few["steps"]


def test_it_costs_the_same_whatever_is_in_flight() -> None:
    few, many = one_life(16), one_life(1_000)
    assert alike(few, many), (few, many)


def test_it_costs_the_same_where_another_process_leases_too() -> None:
    few, many = one_life(16, by_another=True), one_life(1_000, by_another=True)
    assert alike(few, many), (few, many)


def test_a_first_look_is_what_costs() -> None:
    """The count would show it."""
    with tempfile.TemporaryDirectory() as folder:
        counts = []
        for number in (16, 300):
            path = Path(folder) / f"{number}.db"
            with closing(SqliteStore.open(path)) as store:
                cold = TestContext(Path(folder), {}, store)
                cold.policy("caps.all = 5000\n")
                cold.add(*({} for _ in range(number + 1)))
                cold.lease(number)
                cold.context.view = None
                with counted(store) as steps:
                    cold.lease(1)
                counts.append(steps)
        assert not alike(*counts), counts
