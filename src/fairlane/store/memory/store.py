"""The memory store: threads take turns, and nothing outlives the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from fairlane.store.base import Reading, Writing
from fairlane.store.memory.compact import Memory


class MemoryStore:
    """One view or transaction at a time: others wait for its end, so every view is consistent."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._turn = RLock()
        self._busy = False

    @contextmanager
    def read(self) -> Iterator[Reading]:
        """A consistent view."""
        with self._turn:
            self._enter()
            try:
                yield self._memory
            finally:
                self._busy = False

    @contextmanager
    def write(self) -> Iterator[Writing]:
        """One transaction: undone when its block raises."""
        with self._turn:
            self._enter()
            self._memory.begin()
            try:
                yield self._memory
                self._memory.commit()
            except BaseException:
                self._memory.roll_back()
                raise
            finally:
                self._busy = False

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Nothing here outlives the process: there is no commit to share."""
        with self._turn:
            yield

    @property
    def written(self) -> Path | None:
        """No file."""
        return None

    def stamp(self) -> int:
        """Another number than before when somebody has written."""
        with self._turn:
            return self._memory.version()

    def verify(self, fully: bool = True) -> None:
        """There is no file that could be damaged."""

    def check(self) -> list[str]:
        """What is wrong; nothing: it is content."""
        with self._turn:
            return self._memory.problems()

    def close(self) -> None:
        """Nothing more is asked of it."""

    def _enter(self) -> None:
        if self._busy:
            raise RuntimeError("a view is open in this thread: end it before the next one")
        self._busy = True
