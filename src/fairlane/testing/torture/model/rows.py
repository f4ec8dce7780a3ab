"""Model: the rows that a store must have after the writes that were committed."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from heapq import heappush
from typing import TYPE_CHECKING, Any

from fairlane.model.project import (
    Group,
    History,
    Pause,
    PolicyText,
    Pool,
    Project,
    WorkerRow,
    key_of,
)
from fairlane.model.record import changed
from fairlane.model.task import LaneKey, Status
from fairlane.store.base import Filter, Placed
from fairlane.testing.torture.model.compacting import compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlane.model.event import Event
    from fairlane.model.instant import Instant
    from fairlane.model.task import Attempt, Task
    from fairlane.store.base import Booking, Decision, Store
    from fairlane.testing.torture.ports import Write

KINDS: tuple[type[Any], ...] = (Project, Group, Pool, WorkerRow, Pause, History, PolicyText)
#: Four counters, micro-dollars, starts, completions.
Amounts = list[int]


class Book:
    """What was booked in one scope, by minute."""

    __slots__ = ("minutes", "rows")

    def __init__(self) -> None:
        self.minutes: list[Instant] = []
        self.rows: dict[Instant, Amounts] = {}

    def add(self, minute: Instant, amounts: Sequence[int]) -> None:
        """One booking more."""
        row = self.rows.get(minute)
        if row is None:
            insort(self.minutes, minute)
            self.rows[minute] = list(amounts)
        else:
            for at, amount in enumerate(amounts):
                row[at] += amount

    def since(self, begin: Instant | None) -> Amounts:
        """The sum of all minutes from then on."""
        total = [0] * 7
        for minute in self.minutes[0 if begin is None else bisect_left(self.minutes, begin) :]:
            for at, amount in enumerate(self.rows[minute]):
                total[at] += amount
        return total


class Model:
    """Everything that was committed, by plain rules."""

    def __init__(self) -> None:
        self.tasks: dict[str, Placed] = {}  # without their leases
        self.attempts: dict[str, Attempt] = {}
        self.tries: dict[str, list[str]] = {}  # of a task: its leases, in the order of their fences
        self.open: dict[str, str] = {}  # of a task: the lease that has not ended
        self.ready: dict[str, dict[LaneKey, dict[str, Task]]] = {}  # by project and lane
        self.waiting: dict[str, set[str]] = {}  # by code
        self.queued = 0
        self.named: dict[str, set[str]] = {}  # a task: those that name it
        self.timers: list[tuple[Instant, int, str]] = []  # a heap; those that moved are still there
        self.events: list[Event] = []
        self.last_event = 0
        self.books: dict[str, Book] = {}
        self.tables: dict[type[Any], dict[str, Any]] = {kind: {} for kind in KINDS}
        self.values: dict[str, Any] = {}
        self.decisions: dict[int, Decision] = {}
        self.last_fence = 0
        self.touched: set[str] = set()  # tasks that were written since the last comparison
        self.compared_events = 0  # number of the last event that was compared

    @classmethod
    def of(cls, store: Store) -> Model:
        """A model of what a store has by now."""
        model = cls()
        with store.read() as reading:
            for kind in KINDS:
                model.tables[kind] = dict(reading.table(kind))
            after = 0
            while page := reading.listing(Filter(), after):
                after = page[-1].task.seq
                for placed in page:
                    model.put_task(placed)
                    model.put_attempts(reading.attempts(placed.task.id))
            while log := reading.events(model.last_event):
                model.log(log[-1].number, log)
            for decision in reading.decisions(0, 1 << 30):
                model.decisions[decision.number] = decision
            scopes = reading.usage_sums("", -(1 << 62))
            for scope in scopes:
                model.book(reading.usage(scope, None))
            for name in ("clock", "policy", "readiness", "decision", "batch", "last_cycle"):
                if (value := reading.value(name)) is not None:
                    model.values[name] = value
        return model

    # What is asked.

    def task(self, name: str) -> Task:
        """A known task."""
        return self.tasks[name].task

    def status_of(self, name: str) -> Status:
        """Of a known task."""
        return self.tasks[name].task.status

    def flying(self) -> list[tuple[Attempt, Task]]:
        """Attempts that are open, oldest fence first, each with its task."""
        rows = [self.attempts[lease] for lease in self.open.values()]
        rows.sort(key=lambda row: row.fence)
        return [(row, self.tasks[row.task].task) for row in rows]

    @property
    def projects(self) -> dict[str, Project]:
        """Every project by name."""
        return self.tables[Project]

    @property
    def groups(self) -> dict[str, Group]:
        """Every group by name."""
        return self.tables[Group]

    def booked(self, scope: str, begin: Instant | None) -> Amounts:
        """What was booked in a scope from then on."""
        book = self.books.get(scope)
        return book.since(begin) if book is not None else [0] * 7

    # What is written.

    def apply(self, write: Write) -> list[tuple[Any, Any]]:
        """Take one write in; of tasks and attempts, what each was before and is now."""
        what, values = write
        if what in ("save", "insert"):
            return [(self.put_task(placed), self.tasks[placed.task.id]) for placed in values]
        if what == "attempts":
            return self.put_attempts(values)
        _APPLIED[what](self, values)
        return []

    def put_task(self, placed: Placed) -> Placed | None:
        """A task as it is now; what it was before."""
        name, old = placed.task.id, self.tasks.get(placed.task.id)
        if old is not None:
            self._take_out(old)
        self._put_in(_without_lease(placed))
        self.touched.add(name)
        return old

    def put_attempts(self, attempts: Iterable[Attempt]) -> list[tuple[Any, Any]]:
        """Attempts as they are now, each with what it was before."""
        return [(self._put_attempt(row), self.attempts[row.lease]) for row in attempts]

    def log(self, last: int, events: Sequence[Event]) -> None:
        """Lines of the log, the last of them with this number."""
        first = last - len(events) + 1
        self.events += [changed(event, number=first + n) for n, event in enumerate(events)]
        self.last_event = max(self.last_event, last if events else 0)

    def book(self, bookings: Iterable[Booking]) -> None:
        """Usage and counts."""
        for row in bookings:
            amounts = (*row.tokens, row.usd, row.starts, row.completions)
            self.books.setdefault(row.scope, Book()).add(row.minute, amounts)

    def forget(self, task: str) -> None:
        """The attempts of a task are gone."""
        for lease in self.tries.pop(task, ()):
            del self.attempts[lease]

    # Inside

    def _put_attempt(self, attempt: Attempt) -> Attempt | None:
        old = self.attempts.get(attempt.lease)
        self.attempts[attempt.lease] = attempt
        if old is None:
            self.tries.setdefault(attempt.task, []).append(attempt.lease)
            self.last_fence = max(self.last_fence, attempt.fence)
        if attempt.ended_at is None:
            self.open[attempt.task] = attempt.lease
        elif self.open.get(attempt.task) == attempt.lease:
            del self.open[attempt.task]
        self.touched.add(attempt.task)
        return old

    def _put_in(self, placed: Placed) -> None:
        task, wait, due_at = placed
        self.tasks[task.id] = placed
        if due_at is not None:
            heappush(self.timers, (due_at, task.seq, task.id))
        if task.status is not Status.QUEUED:
            return
        self.queued += 1
        for name in links_of(task):
            self.named.setdefault(name, set()).add(task.id)
        if wait:
            self.waiting.setdefault(wait, set()).add(task.id)
        else:
            self.ready.setdefault(task.project, {}).setdefault(task.lane, {})[task.id] = task

    def _take_out(self, placed: Placed) -> None:
        task, wait, _ = placed
        if task.status is not Status.QUEUED:
            return
        self.queued -= 1
        for name in links_of(task):
            self.named[name].discard(task.id)
        if wait:
            self.waiting[wait].discard(task.id)
            return
        lanes = self.ready[task.project]
        del lanes[task.lane][task.id]
        if not lanes[task.lane]:
            del lanes[task.lane]

    def _put_rows(self, rows: Iterable[Any]) -> None:
        for row in rows:
            table, key = self.tables[type(row)], key_of(row)
            if not isinstance(row, PolicyText) or key not in table:
                table[key] = row

    def _drop(self, values: Sequence[Any]) -> None:
        kind, key = values
        self.tables[kind].pop(key, None)

    def _put_clocks(self, values: Sequence[Any]) -> None:
        for name, (clock, present) in values[0].items():
            if name in self.projects:
                row = self.projects[name]
                self.projects[name] = changed(row, clock=clock, present=present)

    def _put_decision(self, values: Sequence[Any]) -> None:
        """The second value is the first decision that is kept, where older ones are dropped."""
        decision, oldest = values[0], values[1] if len(values) > 1 else 0
        self.decisions[decision.number] = decision
        if oldest:
            self.decisions = {n: row for n, row in self.decisions.items() if n >= oldest}

    def _put_value(self, values: Sequence[Any]) -> None:
        name, value = values
        if value is None:
            self.values.pop(name, None)
        else:
            self.values[name] = json.loads(json.dumps(value, ensure_ascii=False))


def links_of(task: Task) -> set[str]:
    """The tasks that this one names."""
    return {*task.needs, task.parent} if task.parent is not None else set(task.needs)


def _without_lease(placed: Placed) -> Placed:
    if placed.task.lease is None:
        return placed
    return placed._replace(task=changed(placed.task, lease=None))


_APPLIED: dict[str, Any] = {
    "log": lambda model, values: model.log(values[0], values[1:]),
    "book": lambda model, values: model.book(values),
    "put": lambda model, values: model._put_rows(values),
    "drop": lambda model, values: model._drop(values),
    "clocks": lambda model, values: model._put_clocks(values),
    "decision": lambda model, values: model._put_decision(values),
    "value": lambda model, values: model._put_value(values),
    "compact": lambda model, values: compact(model, *values),
}
