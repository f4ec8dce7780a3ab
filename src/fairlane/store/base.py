"""The store's interface and its types. A store applies finished values and knows no rules.

`read()` gives a consistent view, `write()` one transaction: durable when its block ends, undone
when the block raises. Within a transaction reads see what was written before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from fairlane.clock import SYSTEM, Clock, Waitable
from fairlane.model.event import Event
from fairlane.model.instant import Instant
from fairlane.model.project import Droppable, Small, SmallRow
from fairlane.model.record import NamedTuple, dataclass, field
from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Attempt, Lane, LaneKey, Status, Task
from fairlane.store.news import Mark, News


class Placed(NamedTuple):
    """A task and its place: in a lane (queued, waits for nothing), waiting, or neither."""

    task: Task
    wait: str = ""  # queued and waiting: the code of what it waits for first
    due_at: Instant | None = None  # waiting: when a timer may have passed; parked: half-open time


@dataclass(frozen=True, slots=True)
class Booking:
    """Usage and counts of one scope in one minute; what is booked adds up."""

    scope: str
    minute: Instant
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0)
    usd: int = 0
    starts: int = 0
    completions: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """A recorded plan with what it was made from, as what differs from a record before it."""

    number: int
    at: Instant
    base: int  # decisions of one base follow each other, and are dropped together
    policy: str  # digest
    planner: int  # version
    lanes: bytes  # what differs of them
    rest: bytes  # what differs of the snapshot without its lanes
    plan: bytes
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tasks: every field that is set must fit."""

    status: tuple[Status, ...] = ()
    project: str | None = None
    kind: str | None = None
    group: str | None = None
    pool: str | None = None
    agent: str | None = None
    parent: str | None = None
    wait: str | None = None  # a code; "" = in a lane
    held_lanes: tuple[LaneKey, ...] | None = None  # ready tasks of these lanes


@dataclass(frozen=True, slots=True)
class Tally:
    """How many tasks of one sort there are; `wait` is "" for queued tasks that are in a lane."""

    status: Status
    wait: str
    project: str
    kind: str
    count: int


class HistoryRow(NamedTuple):
    """One ended attempt as estimates see it."""

    project: str
    kind: str
    agent: str | None
    tokens: tuple[int, int, int, int]
    usd: int | None


#: How far a compaction is: a stage, and what was looked at there last; (): at its beginning.
Place = tuple[Any, ...]
#: For a compaction in one part.
WHOLE = 1 << 40


class Compacted(NamedTuple):
    """What one part of a compaction removed, and the place of the next; None: it is through."""

    tasks: int
    events: int
    decisions: int
    rest: Place | None = None


class Reading(Protocol):
    """What can be asked. Every answer costs what it returns, never the length of the queue."""

    # Tasks
    def task(self, task: str) -> Task | None: ...
    def tasks(self, ids: Iterable[str]) -> dict[str, Task]: ...
    def statuses(self, ids: Iterable[str]) -> dict[str, Status]: ...
    def listing(self, which: Filter, after: int = 0, limit: int = 1000) -> list[Placed]: ...
    def placed(self, task: str) -> Placed | None: ...
    def in_flight(self) -> list[Task]: ...
    def due(self, now: Instant, limit: int) -> list[Placed]: ...
    def next_due(self) -> Instant | None: ...
    def dependents(self, task: str) -> list[str]: ...  # queued tasks that need it
    def children(self, parent: str) -> int: ...
    def tallies(self) -> list[Tally]: ...
    def mark(self) -> Mark: ...  # all that was written before this transaction
    def news(self, since: Mark) -> News: ...  # what has changed, also in this transaction

    # The queue in the planner's order
    def lanes(
        self, age_from: str, window: int, keys: Iterable[LaneKey] | None = None
    ) -> tuple[Lane, ...]: ...  # those of these keys, or all
    def wait_counts(self) -> tuple[WaitCount, ...]: ...

    # Attempts and usage
    def attempt(self, lease: str) -> Attempt | None: ...
    def attempts(self, task: str) -> list[Attempt]: ...
    def open_attempts(
        self, tasks: Iterable[str] | None = None
    ) -> list[Attempt]: ...  # of these tasks, or all
    def ended_attempts(
        self, since: Instant, limit: int
    ) -> list[tuple[Attempt, Task]]: ...  # newest first, without `work`: reports read many
    def recent(
        self, project: str, kind: str, agent: str | None, limit: int
    ) -> list[HistoryRow]: ...  # the newest ended attempts that used anything
    def usage(self, scope: str, since: Instant | None) -> list[Booking]: ...
    def usage_sums(self, prefix: str, since: Instant) -> dict[str, Booking]: ...

    # Small tables, events, decisions, values
    def table(self, kind: type[Small]) -> dict[str, Small]: ...  # every row, by its key
    def events(
        self, after: int = 0, limit: int = 1000, task: str | None = None, last: bool = False,
        kind: str | None = None,
    ) -> list[Event]: ...  # fmt: skip
    def decisions(self, after: int = 0, limit: int = 1000) -> list[Decision]: ...
    def value(self, name: str) -> Any: ...


class Writing(Reading, Protocol):
    """One transaction."""

    def insert(self, tasks: Sequence[Placed]) -> None: ...  # new; ids and seqs given
    def save(self, tasks: Sequence[Placed], content: bool = False) -> None: ...
    def number(self, name: str, count: int = 1) -> int: ...  # first of `count` that never return
    def log(self, events: Sequence[Event]) -> int: ...  # numbers them; the last number
    def put_attempts(self, attempts: Sequence[Attempt]) -> None: ...
    def book(self, bookings: Sequence[Booking]) -> None: ...
    def put(self, *rows: SmallRow) -> None: ...  # new rows of small tables, or known ones as of now
    def drop(self, kind: type[Droppable], key: str) -> None: ...
    def put_clocks(self, clocks: Mapping[str, tuple[int, bool]]) -> None: ...
    def put_decision(self, decision: Decision, oldest: int = 0) -> None: ...  # drops those before
    def put_value(self, name: str, value: object) -> None: ...  # anything JSON has; None removes
    def compact(  # what is older, from a place on; changes about `limit` rows
        self, before: Instant, place: Place = (), limit: int = WHOLE
    ) -> Compacted: ...


class Store(Protocol):
    """Stores everything durably."""

    def read(self) -> AbstractContextManager[Reading]: ...
    def write(self) -> AbstractContextManager[Writing]: ...

    shared: bool  # whether a shared commit is open

    @property
    def path(self) -> Path | None: ...  # of the file, where it is one

    def sharing(self) -> AbstractContextManager[None]: ...  # its transactions share one commit
    def stamp(self) -> int: ...  # another number when another process has written
    def wait_for_change(  # the stamp when it differs, another waitable is ready, or time is over
        self, since: int, timeout: float | None, *others: Waitable, clock: Clock = SYSTEM
    ) -> int: ...
    def verify(self, fully: bool = True) -> None: ...  # `corrupt` if damaged; or cheaply, once
    def check(self) -> list[str]: ...  # its problems; empty: none
    def backup(self, target: Path) -> None: ...  # a consistent copy while others work
    def close(self) -> None: ...
