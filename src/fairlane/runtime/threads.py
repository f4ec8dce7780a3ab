"""Threads for launches and ends: each piece of work runs once, thread or not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor as Threads


class WorkThreads:
    """A pool queues work before it starts a thread for it: work without one is not given again."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._stranded = False  # whether work is queued that no thread may ever take

    def submit(self, work: Callable[..., None], *arguments: object) -> None:
        """Run this in a thread, now or when one can be had."""
        try:
            self._threads.submit(work, *arguments)
        except RuntimeError as error:
            if "new thread" not in str(error):
                raise
            self._stranded = True

    def start_stranded(self) -> None:
        """Ask for a thread again, where one could not be had; `OSError`: it still cannot."""
        if self._stranded:
            try:
                self._threads.submit(_nothing)  # whatever takes this takes the rest too
            except RuntimeError as error:
                raise OSError(str(error)) from error
            self._stranded = False

    def close(self) -> None:
        """Finish what has begun."""
        self._threads.shutdown(wait=True)


def _nothing() -> None:
    pass
