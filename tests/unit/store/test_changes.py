"""A wait for a change ends by a commit, by another waitable, or by time; never too late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from fairlane import file_watch
from fairlane.clock import VirtualClock, Waker
from fairlane.model.event import Event
from fairlane.store.base import Store
from fairlane.store.memory.store import MemoryStore
from fairlane.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.slow

Pair = tuple[Store, Store]


def write(store: Store) -> None:
    with store.write() as tx:
        tx.log([Event(0, 1, "added")])


@pytest.fixture(params=["memory", "sqlite", "sqlite without inotify"])
def pair(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pair]:
    """One who waits, and another who writes."""
    if request.param == "memory":
        store = MemoryStore()
        yield store, MemoryStore(beside=store)
        return
    if "without" in request.param:
        monkeypatch.setattr(file_watch.WriteWatch, "of", lambda file: None)
    one, other = (SqliteStore.open(tmp_path / "fairlane.db") for _ in range(2))
    yield one, other
    one.close()
    other.close()


def in_thread(work: Callable[[], object]) -> Thread:
    thread = Thread(target=work)
    thread.start()
    return thread


def test_a_commit_ends_the_wait(pair: Pair) -> None:
    one, other = pair
    since = one.stamp()
    for _ in range(3):
        thread = in_thread(lambda: write(other))
        stamp = one.wait_for_change(since, None)
        thread.join()
        assert stamp != since
        since = one.stamp()


def test_a_commit_before_the_wait_ends_it_at_once(pair: Pair) -> None:
    one, other = pair
    since = one.stamp()
    write(other)
    assert one.wait_for_change(since, None) != since


def test_another_waitable_ends_the_wait(pair: Pair) -> None:
    one, _ = pair
    with closing(Waker()) as waker:
        thread = in_thread(waker.set)
        since = one.stamp()
        assert one.wait_for_change(since, None, waker) == since
        thread.join()


def test_time_ends_the_wait(pair: Pair) -> None:
    one, _ = pair
    clock, since = VirtualClock(0), one.stamp()
    assert one.wait_for_change(since, 3600.0, clock=clock) == since
    assert clock.monotonic() == pytest.approx(3600.0)
