"""Reader pool: threads that read the store, each with a context of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fairlane.engine.context import Context

#: Threads that read.
READERS = 2

_T = TypeVar("_T")


class ReaderPool:
    """Runs functions that only read, beside the event loop."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context
        self._threads = ThreadPoolExecutor(READERS, "read")

    async def read(self, function: Callable[[Context], _T]) -> _T:
        """The result of a function of a context that changes nothing."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(self._context()))

    def close(self) -> None:
        """Wait for the reads under way, and stop."""
        self._threads.shutdown()
