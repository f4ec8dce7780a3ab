"""Reading: every question as one named statement, or two."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from fairlane.model.event import Event
from fairlane.model.frozen import changed
from fairlane.model.instant import Instant
from fairlane.model.lane import Entry, Lane, LaneKey
from fairlane.model.project import Group, Project
from fairlane.model.resources import History, Pause, Pool
from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Status, Task
from fairlane.store.base import (
    Attempt,
    Booking,
    Decision,
    Filter,
    HistoryRow,
    Placed,
    Tally,
    WorkerRow,
    chunks,
)
from fairlane.store.sqlite.memo import Memo
from fairlane.store.sqlite.queries import queries
from fairlane.store.sqlite.rows import (
    TASK_COLUMNS,
    attempt_of,
    booking_of,
    dump,
    key_of,
    key_text,
    lease_of,
    parse,
    task_of,
    value_of,
)


class SqliteReading:
    """A consistent view."""

    def __init__(self, connection: sqlite3.Connection, memo: Memo | None = None) -> None:
        self._connection = connection
        self._memo = memo or Memo()
        self._open: dict[str, Attempt] = {}  # of a task, where it was read already
        self._queries = queries()

    def _rows(self, name: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(self._queries[name], values).fetchall()

    def _row(self, name: str, *values: Any) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None
        found = self._connection.execute(self._queries[name], values).fetchone()
        return found

    # Tasks

    def task(self, task: str) -> Task | None:
        row = self._row("task", task)
        return None if row is None else self._with_leases([row])[0]

    def tasks(self, ids: Iterable[str]) -> dict[str, Task]:
        found: dict[str, Task] = {}
        for some in chunks(ids):
            for task in self._with_leases(self._rows("tasks", dump(some))):
                found[task.id] = task
        return found

    def statuses(self, ids: Iterable[str]) -> dict[str, Status]:
        found: dict[str, Status] = {}
        for some in chunks(ids):
            found |= {name: Status(held) for name, held in self._rows("statuses", dump(some))}
        return found

    def placed(self, task: str) -> Placed | None:
        row = self._row("task", task)
        return None if row is None else Placed(self._with_leases([row])[0], row[6], row[7])

    def listing(self, which: Filter, after: int = 0, limit: int = 1000) -> list[Placed]:
        where, values = _conditions(which)
        statement = f"SELECT {TASK_COLUMNS} FROM tasks WHERE seq > ? {where} ORDER BY seq LIMIT ?"
        rows = self._connection.execute(statement, (after, *values, limit)).fetchall()
        tasks = self._with_leases(rows)
        return [Placed(task, row[6], row[7]) for task, row in zip(tasks, rows, strict=True)]

    def in_flight(self) -> list[Task]:
        rows = self._rows("in_flight")
        return self._with_leases(rows) if rows else []

    def due(self, now: Instant, limit: int) -> list[Placed]:
        return [Placed(task_of(row), row[6], row[7]) for row in self._rows("due", now, limit)]

    def next_due(self) -> Instant | None:
        row = self._row("next_due")
        return row[0] if row else None

    def dependents(self, task: str) -> list[str]:
        return [name for (name,) in self._rows("dependents", task)]

    def children(self, parent: str) -> int:
        row = self._row("children", parent)
        return row[0] if row else 0

    def tallies(self) -> list[Tally]:
        return [Tally(Status(row[0]), *row[1:]) for row in self._rows("tallies")]

    def version(self) -> int:
        return self._numbers().get("version", 1) - 1

    def _numbers(self) -> dict[str, int]:
        """The next number of each name."""
        return self._memo.get("numbers", lambda: dict(self._rows("numbers")))

    # The queue in the planner's order

    def lanes(self, age_from: str, window: int) -> tuple[Lane, ...]:
        rows = self._rows("lanes")
        return tuple([self._lane(row, age_from, window) for row in rows])

    def lane(self, key: LaneKey, age_from: str, window: int) -> Lane | None:
        row = self._row("lane", key_text(key))
        return None if row is None else self._lane(row, age_from, window)

    def _lane(self, row: tuple[Any, ...], age_from: str, window: int) -> Lane:
        """A lane with its first tasks, which an index holds in their order."""
        lane, key, ready = row
        entries = tuple(map(Entry._make, self._rows(f"window_{age_from}", lane, window)))
        return Lane(key_of(key), ready, entries, entries)

    def lanes_changed(self, since: int) -> set[LaneKey]:
        return {key_of(key) for (key,) in self._rows("lanes_changed", since)}

    def wait_counts(self) -> tuple[WaitCount, ...]:
        found = []
        for code, count in self._rows("wait_codes"):
            first = tuple(name for (name,) in self._rows("wait_first", code))
            until = self._row("wait_until", code)
            found.append(WaitCount(code, count, first, until[0] if until else None))
        return tuple(found)

    # Attempts and usage

    def attempt(self, lease: str) -> Attempt | None:
        row = self._row("attempt", lease)
        if row is None:
            return None
        found = attempt_of(row)
        if found.ended_at is None:
            self._open[found.task] = found
        return found

    def attempts(self, task: str) -> list[Attempt]:
        return [attempt_of(row) for row in self._rows("attempts", task)]

    def open_attempts(self) -> list[Attempt]:
        found = [attempt_of(row) for row in self._rows("open_attempts")]
        self._open |= {each.task: each for each in found}
        return found

    def ended_attempts(self, since: Instant, limit: int) -> list[tuple[Attempt, Task]]:
        attempts = [attempt_of(row) for row in self._rows("ended_attempts", since, limit)]
        tasks = self.tasks({attempt.task for attempt in attempts})
        return [(attempt, tasks[attempt.task]) for attempt in attempts]

    def recent(self, project: str, kind: str, agent: str | None, limit: int) -> list[HistoryRow]:
        rows = self._rows("recent", project, kind, agent, limit)
        return [HistoryRow(row[0], row[1], row[2], tuple(row[3:7]), row[7]) for row in rows]

    def history(self) -> list[History]:
        return list(self._memo.get("history", self._history))

    def _history(self) -> list[History]:
        return [History(row[0], row[1], row[2] or None, *row[3:]) for row in self._rows("history")]

    def usage(self, scope: str, since: Instant | None) -> list[Booking]:
        rows = self._rows("usage", scope, -(1 << 62) if since is None else since)
        return [booking_of(row) for row in rows]

    def usage_sums(self, prefix: str, since: Instant) -> dict[str, Booking]:
        rows = self._rows("usage_sums", prefix, since)
        return {row[0]: booking_of(row) for row in rows}

    # Everything else that is kept

    def projects(self) -> dict[str, Project]:
        return dict(self._memo.get("projects", self._projects))

    def _projects(self) -> dict[str, Project]:
        found = {}
        for body, clock, present in self._rows("projects"):
            held = value_of(Project, body)
            found[held.name] = changed(held, clock=clock, present=bool(present))
        return found

    def groups(self) -> dict[str, Group]:
        return dict(self._memo.get("groups", self._groups))

    def _groups(self) -> dict[str, Group]:
        return {row[0]: Group(*row) for row in self._rows("groups")}

    def pools(self) -> dict[str, Pool]:
        return dict(self._memo.get("pools", self._pools))

    def _pools(self) -> dict[str, Pool]:
        pools = [value_of(Pool, body) for (body,) in self._rows("pools")]
        return {pool.name: pool for pool in pools}

    def workers(self) -> list[WorkerRow]:
        return list(self._memo.get("workers", self._workers))

    def _workers(self) -> list[WorkerRow]:
        return [value_of(WorkerRow, body) for (body,) in self._rows("workers")]

    def pauses(self) -> list[Pause]:
        return list(self._memo.get("pauses", self._pauses))

    def _pauses(self) -> list[Pause]:
        return [value_of(Pause, body) for (body,) in self._rows("pauses")]

    def events(
        self, after: int = 0, limit: int = 1000, task: str | None = None, last: bool = False
    ) -> list[Event]:
        name = ("last_events" if last else "events") + ("_of_task" if task is not None else "")
        values = (after, limit) if task is None else (task, after, limit)
        rows = self._rows(name, *values)
        found = [_event(row) for row in rows]
        return found[::-1] if last else found

    def decision(self, number: int) -> Decision | None:
        row = self._row("decision", number)
        return None if row is None else _decision(row)

    def decisions(self, after: int = 0, limit: int = 1000) -> list[Decision]:
        return [_decision(row) for row in self._rows("decisions", after, limit)]

    def policy_text(self, digest: str) -> str | None:
        row = self._row("policy_text", digest)
        return row[0] if row else None

    def value(self, name: str) -> Any:
        row = self._memo.get(f"value {name}", lambda: self._row("value", name))
        return None if row is None else parse(row[0])

    def _with_leases(self, rows: list[tuple[Any, ...]]) -> list[Task]:
        """Tasks from rows; those in flight with the lease of their open attempt."""
        flying = [row[1] for row in rows if row[4] in ("leased", "running")]
        unread = [name for name in flying if name not in self._open]
        for row in self._rows("open_attempts_of", dump(unread)) if unread else ():
            self._open[row[2]] = attempt_of(row)
        held = {name: lease_of(self._open[name]) for name in flying if name in self._open}
        return [task_of(row, held.get(row[1])) for row in rows]


def _event(row: tuple[Any, ...]) -> Event:
    number, at, kind, task, project, data = row
    return Event(number, at, kind, task, project, parse(data))


def _decision(row: tuple[Any, ...]) -> Decision:
    number, at, base, policy, planner, lanes, rest, plan, digests = row
    return Decision(number, at, base, policy, planner, lanes, rest, plan, parse(digests))


#: Statuses that have an index of their own, and what it takes to be allowed to use it.
_LIVE = frozenset({Status.LEASED, Status.RUNNING, Status.PARKED})
_OF_INDEX_LIVE = "status IN ('leased', 'running', 'parked')"


def _conditions(which: Filter) -> tuple[str, list[Any]]:
    """The filter as SQL with its values; names of columns are ours, values are bound."""
    found: list[tuple[str, list[Any]]] = []
    if which.status:
        found.append((f"status IN ({_marks(which.status)})", [str(s) for s in which.status]))
        if _LIVE.issuperset(which.status):
            found.append((_OF_INDEX_LIVE, []))
    columns = {
        "project": which.project, "kind": which.kind, "in_group": which.group,
        "pool": which.pool, "agent": which.agent, "parent": which.parent,
    }  # fmt: skip
    found += [(f"{name} = ?", [held]) for name, held in columns.items() if held is not None]
    if which.wait == "":
        found.append(("lane IS NOT NULL", []))
    elif which.wait is not None:
        found.append(("wait = ? AND wait <> ''", [which.wait]))
    if which.held_lanes is not None:
        keys = dump([key_text(key) for key in which.held_lanes])
        lanes = "SELECT id FROM lanes WHERE key IN (SELECT value FROM json_each(?))"
        found.append((f"lane IN ({lanes})", [keys]))
    text = "".join(f" AND {condition}" for condition, _ in found)
    return text, [value for _, values in found for value in values]


def _marks(items: tuple[Any, ...]) -> str:
    return ", ".join("?" * len(items))
