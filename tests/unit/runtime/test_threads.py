"""A pool that cannot start a thread has queued the work already: it runs once, not twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairlane.runtime.launch import WorkThreads
from tests.waiting import until


@pytest.fixture
def refuse_threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[set[int]], None]:
    """The starts of threads with these numbers fail."""

    def refuse(numbers: set[int]) -> None:
        count, start = [0], threading.Thread.start

        def counted(self: threading.Thread) -> None:
            count[0] += 1
            if count[0] in numbers:
                raise RuntimeError("can't start new thread")
            start(self)

        monkeypatch.setattr(threading.Thread, "start", counted)

    return refuse


def test_work_without_a_thread_of_its_own_runs_once(refuse_threads) -> None:
    refuse_threads({2})
    ran: list[str] = []
    free = threading.Event()
    threads = WorkThreads(ThreadPoolExecutor(4))

    def wait_then_run() -> None:
        free.wait()
        ran.append("a")

    threads.submit(wait_then_run)
    threads.submit(ran.append, "b")  # no thread for it: the first one takes it, or a later one
    threads.start_stranded()
    free.set()
    threads.close()
    assert sorted(ran) == ["a", "b"]


def test_work_without_any_thread_is_begun_when_there_is_one(refuse_threads) -> None:
    refuse_threads({1, 2})
    ran: list[str] = []
    threads = WorkThreads(ThreadPoolExecutor(4))
    threads.submit(ran.append, "a")
    with pytest.raises(OSError, match="can't start new thread"):
        threads.start_stranded()
    threads.start_stranded()
    until(lambda: ran == ["a"])
    threads.close()
    assert ran == ["a"]
