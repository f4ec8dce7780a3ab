"""The store and the executor as one process sees them: gates, faults, and a record of writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fairlane.clock import SYSTEM, Clock, Waitable
from fairlane.engine.context import Context
from fairlane.executors.base import Handle, Orders, State
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.model.event import Event
from fairlane.model.instant import Instant
from fairlane.model.project import Droppable, SmallRow
from fairlane.model.task import Attempt
from fairlane.policy.policy import Policy
from fairlane.simulation.processes import Machine, Script, VirtualExecutor
from fairlane.store.base import (
    WHOLE,
    Booking,
    Compacted,
    Decision,
    Place,
    Placed,
    Reading,
    Store,
    Writing,
)
from fairlane.testing.torture.stage import Killed, Process, current

#: What a store says that cannot be used now, by the name of the fault.
AWAY = {
    "busy": ("the store is busy: another process has the write lock", "busy"),
    "full": ("no room left to write the store", "disk_full"),
    "unreachable": ("the store cannot be opened", "unreachable"),
}


class Write(NamedTuple):
    """One call that changes the store."""

    what: str
    values: tuple[Any, ...]


class Recorder:
    """A transaction that writes down what is written."""

    def __init__(self, tx: Writing) -> None:
        self._tx = tx
        self.writes: list[Write] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def insert(self, tasks: Sequence[Placed]) -> None:
        self._tx.insert(tasks)
        self.writes.append(Write("insert", tuple(tasks)))

    def save(self, tasks: Sequence[Placed], content: bool = False) -> None:
        self._tx.save(tasks, content)
        self.writes.append(Write("save", tuple(tasks)))

    def log(self, events: Sequence[Event]) -> int:
        last = self._tx.log(events)
        self.writes.append(Write("log", (last, *events)))
        return last

    def put_attempts(self, attempts: Sequence[Attempt]) -> None:
        self._tx.put_attempts(attempts)
        self.writes.append(Write("attempts", tuple(attempts)))

    def book(self, bookings: Sequence[Booking]) -> None:
        self._tx.book(bookings)
        self.writes.append(Write("book", tuple(bookings)))

    def put(self, *rows: SmallRow) -> None:
        self._tx.put(*rows)
        self.writes.append(Write("put", rows))

    def drop(self, kind: type[Droppable], key: str) -> None:
        self._tx.drop(kind, key)
        self.writes.append(Write("drop", (kind, key)))

    def put_clocks(self, clocks: Mapping[str, tuple[int, bool]]) -> None:
        self._tx.put_clocks(clocks)
        self.writes.append(Write("clocks", (dict(clocks),)))

    def put_decision(self, decision: Decision, oldest: int = 0) -> None:
        self._tx.put_decision(decision, oldest)
        self.writes.append(Write("decision", (decision,)))

    def put_value(self, name: str, value: object) -> None:
        self._tx.put_value(name, value)
        self.writes.append(Write("value", (name, value)))

    def compact(self, before: Instant, place: Place = (), limit: int = WHOLE) -> Compacted:
        done = self._tx.compact(before, place, limit)
        self.writes.append(Write("compact", (before, place, done.rest)))
        return done


#: Is told what a process has committed.
Committed = Callable[[Process, list[Write]], None]


class StagedStore:
    """A store whose transactions are gates; whoever waits outside sees whole transactions."""

    def __init__(self, inner: Store, process: Process, committed: Committed) -> None:
        self._inner, self._process, self._committed = inner, process, committed
        self.shared = False  # whether a shared commit is open
        self._shared: list[Write] | None = None  # writes of a shared commit

    @property
    def path(self) -> Path | None:
        """Of the file, where it is one."""
        return self._inner.path

    @contextmanager
    def read(self) -> Iterator[Reading]:
        """A consistent view."""
        _fail(self._process.gate("read"))
        with _inside(), self._inner.read() as reading:
            yield reading

    @contextmanager
    def write(self) -> Iterator[Writing]:
        """One transaction; it may fail before it begins, or be cut off before its commit."""
        order = self._process.gate("write")
        if order != "full":
            _fail(order)
        with _inside():
            with self._inner.write() as tx:
                recorder = Recorder(tx)
                yield recorder
                if order == "inside":
                    self._process.dead = True
                    raise Killed
                _fail(order)
            if self._shared is not None:
                self._shared += recorder.writes
            else:
                self._committed(self._process, recorder.writes)
        self._process.gate("written")

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Its transactions are durable together."""
        _fail(self._process.gate("share"))
        with _inside():
            self._shared = []
            try:
                with self._inner.sharing():
                    self.shared = self._inner.shared
                    yield
                self._committed(self._process, self._shared)
            finally:
                self._shared, self.shared = None, False
        self._process.gate("written")

    def stamp(self) -> int:
        """Changes when another process has written."""
        return self._inner.stamp()

    def wait_for_change(
        self, since: int, timeout: float | None, *others: Waitable, clock: Clock = SYSTEM
    ) -> int:
        """The stamp when it differs, another waitable is ready, or the time is over.

        The stage knows of every commit; what the kernel tells of files depends on the machine.
        """
        del clock  # a process of the stage waits by its own
        self._process.clock.wait_unless(lambda: self.stamp() != since, timeout, *others)
        return self.stamp()

    def verify(self, fully: bool = True) -> None:
        """`corrupt` if damaged."""
        _fail(self._process.gate("verify"))
        self._inner.verify(fully)

    def check(self) -> list[str]:
        """Its problems."""
        return self._inner.check()

    def backup(self, target: Path) -> None:
        """A consistent copy."""
        self._inner.backup(target)

    def close(self) -> None:
        """Nothing more is asked of it."""
        self._inner.close()


class StagedContext(Context):
    """A context; each thread remembers by which policy it goes."""

    def policy(self) -> Policy:
        """The policy in force."""
        strand = current()
        try:
            strand.policy, strand.policy_broken = super().policy(), False
        except FairlaneError:
            strand.policy_broken = True
            raise
        strand.process.policy = strand.policy
        return strand.policy


class StagedExecutor(VirtualExecutor):
    """Virtual processes; a process of the stage may be killed before and after each launch."""

    def __init__(
        self,
        machine: Machine,
        script: Callable[[Orders], Script],
        process: Process,
        launched: Callable[[Process, Orders], None],
    ) -> None:
        super().__init__(machine, script)
        self._process, self._launched = process, launched

    def launch(self, orders: Orders) -> Handle:
        """Begin to follow the script."""
        self._process.gate("launch")
        self._launched(self._process, orders)
        handle = super().launch(orders)
        self._process.gate("launched")
        return handle

    def poll(self, handle: Handle) -> State:
        """How far the script is."""
        self._process.gate("poll")
        return super().poll(handle)

    def stop(self, handle: Handle) -> None:
        """End the script early."""
        self._process.gate("stop")
        super().stop(handle)

    def adopt(self, run: Path) -> Handle | None:
        """The attempt of this run folder, if it runs."""
        self._process.gate("adopt")
        return super().adopt(run)

    def revoke(self, run: Path) -> None:
        """A launch in this folder starts nothing."""
        self._process.gate("revoke")
        super().revoke(run)


@contextmanager
def _inside() -> Iterator[None]:
    strand = current()
    strand.inside += 1
    try:
        yield
    finally:
        strand.inside -= 1


def _fail(order: str) -> None:
    if order in AWAY:
        message, code = AWAY[order]
        raise TryLater(message, "Try again.", code)


def named(writes: Iterable[Write], what: str) -> Iterator[Any]:
    """The values of all writes of one sort."""
    for write in writes:
        if write.what == what:
            yield from write.values
