"""Store: what is kept, as one small seam. A store applies finished values and knows no rules.

`read()` gives a consistent view, `write()` one transaction: durable when its block ends, undone
when the block raises. Within a transaction reads see what was written before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fairlane.model.event import Event
from fairlane.model.instant import Instant
from fairlane.model.lane import Lane, LaneKey
from fairlane.model.project import Group, Project
from fairlane.model.record import dataclass
from fairlane.model.resources import History, Pause, Pool
from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Status, Task


class Placed(NamedTuple):
    """A task and where it stands: in a lane (queued, waits for nothing), waiting, or neither."""

    task: Task
    wait: str = ""  # queued and waiting: the code of what it waits for first
    due_at: Instant | None = None  # waiting: when a timer may have passed; parked: half-open time


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a task. `ended_at` None: its lease has not ended."""

    lease: str
    task: str
    project: str
    kind: str
    agent: str | None
    number: int
    fence: int
    worker: str | None
    leased_at: Instant
    expires_at: Instant
    estimate: int = 0  # tokens reserved at the start
    weight: int = 1  # of its project at the start
    charged: int = 0  # tokens that its project's clock has been charged with so far
    workspace: str | None = None
    started_at: Instant | None = None  # first heartbeat or report
    ended_at: Instant | None = None
    outcome: str | None = None
    detail: str = ""
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0)  # input, output, cache read, cache write
    usd: int | None = None  # micro-dollars; None: the program does not say
    host: str | None = None
    pid: int | None = None
    pid_started: str | None = None
    executor: str = "none"  # none: somebody outside holds the lease
    direct: bool = False
    session: str | None = None
    note: str = ""  # the last progress that it reported
    result: Mapping[str, Any] | None = None


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
class WorkerRow:
    """A worker as it is kept."""

    name: str
    host: str = ""
    slots: int | None = None
    labels: tuple[str, ...] = ()
    seen_at: Instant = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """A recorded plan with what it was made from; `base` names the full record of its lanes."""

    number: int
    at: Instant
    base: int  # the decision whose lanes are recorded in full (itself: this one)
    policy: str  # digest
    planner: int  # version
    lanes: bytes  # all of them, or those that differ from the base
    rest: bytes  # the snapshot without its lanes
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
    def version(self) -> int: ...  # grows with every transaction that wrote

    # The queue in the planner's order
    def lanes(self, age_from: str, window: int) -> tuple[Lane, ...]: ...
    def lane(self, key: LaneKey, age_from: str, window: int) -> Lane | None: ...
    def lanes_changed(self, since: int) -> set[LaneKey]: ...  # after this version
    def wait_counts(self) -> tuple[WaitCount, ...]: ...

    # Attempts and usage
    def attempt(self, lease: str) -> Attempt | None: ...
    def attempts(self, task: str) -> list[Attempt]: ...
    def open_attempts(self) -> list[Attempt]: ...
    def ended_attempts(self, since: Instant, limit: int) -> list[tuple[Attempt, Task]]: ...
    def recent(
        self, project: str, kind: str, agent: str | None, limit: int
    ) -> list[HistoryRow]: ...  # the newest ended attempts that used anything
    def history(self) -> list[History]: ...  # one row a (project, kind, agent)
    def usage(self, scope: str, since: Instant | None) -> list[Booking]: ...
    def usage_sums(self, prefix: str, since: Instant) -> dict[str, Booking]: ...

    # Everything else that is kept
    def projects(self) -> dict[str, Project]: ...
    def groups(self) -> dict[str, Group]: ...
    def pools(self) -> dict[str, Pool]: ...
    def workers(self) -> list[WorkerRow]: ...
    def pauses(self) -> list[Pause]: ...
    def events(
        self, after: int = 0, limit: int = 1000, task: str | None = None, last: bool = False
    ) -> list[Event]: ...
    def decision(self, number: int) -> Decision | None: ...
    def decisions(self, after: int = 0, limit: int = 1000) -> list[Decision]: ...
    def policy_text(self, digest: str) -> str | None: ...
    def value(self, name: str) -> Any: ...


class Writing(Reading, Protocol):
    """One transaction."""

    def insert(self, tasks: Sequence[Placed]) -> None: ...  # new; ids and seqs given
    def save(self, tasks: Sequence[Placed]) -> None: ...  # what has happened to known tasks
    def rewrite(self, tasks: Sequence[Placed]) -> None: ...  # what they say too (`edit`)
    def number(self, name: str, count: int = 1) -> int: ...  # first of `count` that never return
    def log(self, events: Sequence[Event]) -> int: ...  # numbers them; the last number
    def put_attempts(self, attempts: Sequence[Attempt]) -> None: ...
    def put_history(self, rows: Sequence[History]) -> None: ...
    def book(self, bookings: Sequence[Booking]) -> None: ...
    def put_project(self, project: Project) -> None: ...
    def drop_project(self, name: str) -> None: ...
    def put_clocks(self, clocks: Mapping[str, tuple[int, bool]]) -> None: ...
    def put_group(self, group: Group) -> None: ...
    def put_pool(self, pool: Pool) -> None: ...
    def put_worker(self, worker: WorkerRow) -> None: ...
    def drop_worker(self, name: str) -> None: ...
    def put_pause(self, pause: Pause) -> None: ...
    def drop_pause(self, scope: str) -> None: ...
    def put_decision(self, decision: Decision) -> None: ...
    def drop_decisions(self, before: int) -> None: ...
    def put_policy_text(self, digest: str, text: str) -> None: ...
    def put_value(self, name: str, value: Any) -> None: ...  # anything JSON has; None removes
    def compact(self, before: Instant) -> dict[str, int]: ...


class Store(Protocol):
    """Where everything is kept."""

    @property
    def written(self) -> Path | None: ...  # a file that every transaction writes to, if any

    def read(self) -> AbstractContextManager[Reading]: ...
    def write(self) -> AbstractContextManager[Writing]: ...
    def sharing(self) -> AbstractContextManager[None]: ...  # its transactions share one commit
    def stamp(self) -> int: ...  # another number when another process has written
    def verify(self, fully: bool = True) -> None: ...  # `corrupt` if damaged; or cheaply, once
    def check(self) -> list[str]: ...  # what is wrong with it; nothing = content
    def close(self) -> None: ...


def chunks(items: Iterable[str], size: int = 500) -> Iterator[list[str]]:
    """Items in lists that one query can take."""
    listed = list(items)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]
