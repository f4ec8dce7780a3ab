"""Context pool: threads beside the event loop, each with a context of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fairlane.engine.context import Context

_T = TypeVar("_T")


class ContextPool:
    """Runs functions of a context in threads."""

    def __init__(self, context: Callable[[], Context], size: int, name: str) -> None:
        self._context = context
        self._threads = ThreadPoolExecutor(size, name)

    async def run(self, function: Callable[[Context], _T]) -> _T:
        """The result of a function of a context."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(self._context()))

    def close(self) -> None:
        """Wait for the calls under way, and stop."""
        self._threads.shutdown()
