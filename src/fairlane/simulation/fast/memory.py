"""Memory that says what has changed, and forgets what nobody reads: the log of events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fairlane.model.event import Event
from fairlane.model.project import Droppable, Small, SmallRow, key_of
from fairlane.model.record import dataclass, field
from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Attempt, LaneKey, Status
from fairlane.store.base import Booking, Writing
from fairlane.store.memory.rows import Row
from fairlane.store.memory.store import Memory, MemoryStore
from fairlane.store.memory.usage import Account


@dataclass(slots=True)
class News:
    """What has changed since somebody looked; whoever looks empties it."""

    flights: set[str] = field(default_factory=set)  # tasks that are or were in flight
    lanes: set[LaneKey] = field(default_factory=set)
    scopes: set[str] = field(default_factory=set)  # in which something was booked


class WatchedMemory(Memory):
    """All data, with news of it."""

    def __init__(self) -> None:
        super().__init__()
        self.stop_asked = False  # whether a stop was requested since this was set to False
        self._changes: Counter[type[SmallRow]] = Counter()
        self._read: dict[type[SmallRow], tuple[int, dict[str, Any]]] = {}
        self._counted: tuple[WaitCount, ...] | None = None  # until a task begins or ends to wait
        self._whole: dict[str, int] = {}  # values that are numbers
        self._watchers: list[News] = []

    def watch(self) -> News:
        """News from now on: at first of everything."""
        news = News(set(self._open), set(self._lines.known), set(self._accounts))
        self._watchers.append(news)
        return news

    def forget(self, news: News) -> None:
        """Nobody looks there any more."""
        self._watchers = [other for other in self._watchers if other is not news]

    def changes_of(self, kind: type[SmallRow]) -> int:
        """Another number when a small table has changed."""
        return self._changes[kind]

    @property
    def waits_for_files(self) -> bool:
        """Whether a task waits for artifacts."""
        return (Status.QUEUED, "artifact") in self._shelves

    def open_attempt(self, task: str) -> Attempt | None:
        """The attempt of a task that has not ended."""
        lease = self._open.get(task)
        return None if lease is None else self._attempts[lease]

    def account(self, scope: str) -> Account | None:
        """What was booked in a scope."""
        return self._accounts.get(scope)

    def table(self, kind: type[Small]) -> dict[str, Small]:
        """As the store has it, put in order once for many readers."""
        changes, known = self._changes[kind], self._read.get(kind)
        if known is None or known[0] != changes:
            known = self._read[kind] = changes, super().table(kind)
        return known[1].copy()

    def wait_counts(self) -> tuple[WaitCount, ...]:
        if self._counted is None:
            self._counted = super().wait_counts()
        return self._counted

    def value(self, name: str) -> Any:
        """A number as it is; anything else as the store has it."""
        number = self._whole.get(name)
        return super().value(name) if number is None else number

    def put_value(self, name: str, value: object) -> None:
        self._whole.pop(name, None)
        super().put_value(name, value)
        if type(value) is int:
            self._whole[name] = value

    def book(self, bookings: Sequence[Booking]) -> None:
        for news in self._watchers:
            news.scopes.update([row.scope for row in bookings])
        super().book(bookings)

    def log(self, events: Sequence[Event]) -> int:
        return 0

    def put(self, *rows: SmallRow) -> None:
        super().put(*rows)
        for row in rows:
            kind, key = type(row), key_of(row)
            before, known = self._changes[kind], self._read.get(kind)
            self._changes[kind] = before + 1
            if known is not None and known[0] == before and key in known[1]:
                known[1][key] = row  # its place in the order is the same
                self._read[kind] = before + 1, known[1]

    def drop(self, kind: type[Droppable], key: str) -> None:
        self._changes[kind] += 1
        super().drop(kind, key)

    def roll_back(self) -> None:
        super().roll_back()
        self._whole.clear()
        for kind in self._changes:
            self._changes[kind] += 1
        for news in self._watchers:
            news.scopes.update(self._accounts)

    def _swap(self, old: Row | None, new: Row | None) -> None:
        super()._swap(old, new)
        for row in (old, new):
            if row is None:
                continue
            if row.shelf[1]:
                self._counted = None
            task = row.placed.task
            if task.status.in_flight:
                self._tell_of(task.id)
                self.stop_asked = self.stop_asked or bool(task.stop_requested)
            if row.lane is not None:
                for news in self._watchers:
                    news.lanes.add(row.lane)

    def _swap_attempt(self, old: Attempt | None, new: Attempt | None) -> None:
        super()._swap_attempt(old, new)
        attempt = old or new
        if attempt is not None:
            self._tell_of(attempt.task)

    def _tell_of(self, task: str) -> None:
        for news in self._watchers:
            news.flights.add(task)


class Transaction:
    """One at a time, by one thread: there is nobody to wait for or to tell."""

    __slots__ = ("_memory",)

    def __init__(self, memory: WatchedMemory) -> None:
        self._memory = memory

    def __enter__(self) -> Writing:
        self._memory.begin()
        return self._memory

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._memory.commit()
        else:
            self._memory.roll_back()


class WatchedStore(MemoryStore):
    """A store in memory that says what has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = WatchedMemory()
        self._memory = self.memory
        #: What `write` opens, where nothing else of the store is asked meanwhile.
        self.transaction = Transaction(self.memory)
