"""The memory store: threads take turns, and nothing outlives the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from threading import RLock

from fairlane.clock import SYSTEM, Clock, Waitable, Waker
from fairlane.model.errors import Refused
from fairlane.store.base import Reading, Writing
from fairlane.store.memory.compacting import Compaction


class MemoryStore:
    """One view or transaction at a time: others wait for its end, so every view is consistent."""

    def __init__(self, beside: MemoryStore | None = None) -> None:
        """`beside`: another handle on the same memory, as another process has one on a file."""
        self._memory: Memory = beside._memory if beside else Memory()
        self._turn: AbstractContextManager[bool] = beside._turn if beside else RLock()
        self._handles: list[MemoryStore] = beside._handles if beside else []
        self._handles.append(self)
        self.path = None
        self.shared = False  # there is no commit to share
        self._busy = False
        self._written_by_others = 0
        self._waiters: set[Waker] = set()

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
                if self._memory.commit():
                    self._tell_others()
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

    def _tell_others(self) -> None:
        for other in self._handles:
            if other is not self:
                other._written_by_others += 1
                for waiter in tuple(other._waiters):
                    waiter.set()

    def stamp(self) -> int:
        """Changes whenever another handle has written."""
        with self._turn:
            return self._written_by_others

    def wait_for_change(
        self, since: int, timeout: float | None, *others: Waitable, clock: Clock = SYSTEM
    ) -> int:
        """The stamp when another has written, a waitable is ready, or the time is over."""
        with closing(Waker()) as waker:
            self._waiters.add(waker)
            try:
                if self.stamp() == since:
                    clock.wait(timeout, waker, *others)
                return self.stamp()
            finally:
                self._waiters.discard(waker)

    def verify(self, fully: bool = True) -> None:
        """There is no file that could be damaged."""

    def check(self) -> list[str]:
        """Its problems; empty: none."""
        with self._turn:
            return self._memory.problems()

    def backup(self, target: Path) -> None:
        """Nothing here outlives the process."""
        raise Refused(f"a store in memory is not copied to {target}", "Use a store in a file.")

    def close(self) -> None:
        """Nothing more is asked of it."""
        if self in self._handles:
            self._handles.remove(self)

    def _enter(self) -> None:
        if self._busy:
            raise RuntimeError("a view is open in this thread: end it before the next one")
        self._busy = True


class Memory(Compaction):
    """All data: one object that reads and, in a transaction, writes."""

    def problems(self) -> list[str]:
        """Where what is derived does not agree with what it is derived from."""
        anew = Memory()
        anew._tables = self._tables
        anew.begin()
        anew.insert([row.placed for row in self._rows.values()])
        anew.put_attempts(list(self._attempts.values()))
        anew.commit()
        derived, again = _derived(self), _derived(anew)
        wrong = [what for what in derived if derived[what] != again[what]]
        texts = [f"{what} do not agree with the tasks" for what in wrong]
        flying = {row.placed.task.id for row in self._rows.values() if row.shelf[0].in_flight}
        if flying != set(self._open):
            texts.append("tasks in flight without exactly one open attempt")
        return texts


def _derived(memory: Memory) -> dict[str, object]:
    """Everything that follows from tasks and attempts."""
    size = len(memory._rows)
    return {
        "lanes by ready_since": {lane.key: lane for lane in memory.lanes("ready", size)},
        "lanes by created_at": {lane.key: lane for lane in memory.lanes("created", size)},
        "tallies": memory.tallies(),
        "wait counts": memory.wait_counts(),
        "due": list(memory._due),
        "dependents": memory._dependents,
        "attempts": (list(memory._ended), memory._open, memory._fences),
    }
