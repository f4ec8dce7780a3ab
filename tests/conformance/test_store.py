"""Every store does the same: in memory, in a file, and in a file that is opened anew each time."""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

import pytest

from fairlane.clock import SYSTEM
from fairlane.store.memory.store import MemoryStore
from fairlane.testing.store_suite import StoreSuite
from fairlane.testing.stores.builders import put, ready, save, start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fairlane.clock import Clock, Waitable
    from fairlane.store.base import Reading, Store, Writing


def open_sqlite(path: Path) -> Store:
    from fairlane.store.sqlite.store import SqliteStore

    return SqliteStore.open(path)


class Reopened:
    """A store whose file is closed and opened again after every transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = open_sqlite(path)
        self.turn = RLock()
        self.shared = False

    @contextmanager
    def read(self) -> Iterator[Reading]:
        with self.turn, self.store.read() as reading:
            yield reading

    @contextmanager
    def write(self) -> Iterator[Writing]:
        with self.turn:
            try:
                with self.store.write() as writing:
                    yield writing
            finally:
                self.reopen()

    @contextmanager
    def sharing(self) -> Iterator[None]:
        with self.turn:
            self.shared = True
            try:
                with self.store.sharing():
                    yield
            finally:
                self.shared = False
                self.reopen()

    def reopen(self) -> None:
        if not self.shared:
            self.store.close()
            self.store = open_sqlite(self.path)

    def backup(self, target: Path) -> None:
        self.store.backup(target)

    def stamp(self) -> int:
        return self.store.stamp()

    def wait_for_change(
        self, since: int, timeout: float | None, *others: Waitable, clock: Clock = SYSTEM
    ) -> int:
        return self.store.wait_for_change(since, timeout, *others, clock=clock)

    def verify(self, fully: bool = True) -> None:
        self.store.verify(fully)

    def check(self) -> list[str]:
        return self.store.check()

    def close(self) -> None:
        self.store.close()


class TestMemory(StoreSuite):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()

    def test_transactions_do_not_nest(self) -> None:
        store = MemoryStore()
        with store.read(), pytest.raises(RuntimeError), store.write():
            pass
        with store.write() as writing, pytest.raises(RuntimeError), store.read():
            pass
        with store.read(), pytest.raises(RuntimeError, match="only reads"):
            writing.insert([ready("a", 1)])

    def test_a_store_that_does_not_add_up_is_found(self) -> None:
        store = MemoryStore()
        put(store, ready("a", 1), ready("b", 2))
        held = ready("a", 1).task
        store._memory._lines.remove(held.lane, held.entry)
        assert store.check() == [
            "lanes by ready_since do not agree with the tasks",
            "lanes by created_at do not agree with the tasks",
        ]


class TestSqlite(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = open_sqlite(tmp_path / "fairlane.db")
        yield store
        store.close()

    def test_another_process_does_not_change_a_view(self, tmp_path: Path) -> None:
        one, other = (open_sqlite(tmp_path / "two.db") for _ in range(2))
        put(one, ready("a", 1))
        stamp = one.stamp()
        assert one.stamp() == stamp
        with one.read() as reading:
            assert reading.placed("a") == ready("a", 1)
            save(other, ready("a", 1, failures=1))
            start(other, ready("a", 1, failures=1))
            assert reading.placed("a") == ready("a", 1)
            assert reading.in_flight() == []
            assert [lane.count for lane in reading.lanes("ready", 1)] == [1]
        with one.read() as reading:
            assert reading.lanes("ready", 1) == ()
        assert one.stamp() != stamp
        one.close()
        other.close()


class TestReopened(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = Reopened(tmp_path / "fairlane.db")
        yield store
        store.close()

    def test_who_was_told_of_what_is_undone_reads_all_again(self, store: Store) -> None:
        """A mark is of one handle, and this one is gone: nobody has it any more."""
