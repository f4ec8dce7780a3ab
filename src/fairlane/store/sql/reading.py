"""Reading: every question as one named statement, or two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from fairlane.model.event import Event
from fairlane.model.instant import Instant
from fairlane.model.project import Small, key_of
from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Attempt, Entry, Lane, LaneKey, Status, Task, lease_of
from fairlane.store.base import Booking, Decision, Filter, HistoryRow, Placed, Tally
from fairlane.store.news import Mark, News
from fairlane.store.sql.changes import Memo, Written, read_written, value_name
from fairlane.store.sql.rows import (
    ATTEMPT_COLUMNS,
    CODECS,
    ENDED_COLUMNS,
    TASK_COLUMNS,
    Row,
    attempt_of,
    booking_of,
    dump,
    key_text,
    lane_key_of,
    parse,
    task_of,
)


class Cursor(Protocol):
    """What a statement returned."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Row | None: ...
    def fetchall(self) -> list[Row]: ...


class Connection(Protocol):
    """What is used of a database connection."""

    def execute(self, statement: str, values: Sequence[object] = ..., /) -> Cursor: ...
    def executemany(self, statement: str, rows: Iterable[Row], /) -> object: ...


def read_statements(file: Path) -> dict[str, str]:
    """Named SQL: `-- name: x`, then the statement, up to the next name."""
    statements: dict[str, str] = {}
    for part in file.read_text(encoding="utf-8").split("-- name: ")[1:]:
        name, _, statement = part.partition("\n")
        statement = statement.replace("{task}", TASK_COLUMNS).replace("{attempt}", ATTEMPT_COLUMNS)
        statement = statement.replace("{ended}", ENDED_COLUMNS)
        statements[name.strip()] = statement.strip()
    return statements


class SqlReading:
    """A consistent view."""

    def __init__(
        self, connection: Connection, statements: Mapping[str, str], memo: Memo | None = None
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._memo = memo or Memo()
        self._memo.follow(self._version, self._written)
        self._open: dict[str, Attempt] = {}  # of a task, where it was read already

    def _rows(self, name: str, *values: object) -> list[Row]:
        return self._connection.execute(self._statements[name], values).fetchall()

    def _row(self, name: str, *values: object) -> Row | None:
        return self._connection.execute(self._statements[name], values).fetchone()

    # Tasks

    def task(self, task: str) -> Task | None:
        row = self._row("task", task)
        return None if row is None else self._with_leases([row])[0]

    def tasks(self, ids: Iterable[str]) -> dict[str, Task]:
        rows: dict[str, Task] = {}
        for some in _chunks(ids):
            for task in self._with_leases(self._rows("tasks", dump(some))):
                rows[task.id] = task
        return rows

    def statuses(self, ids: Iterable[str]) -> dict[str, Status]:
        known: dict[str, Status] = {}
        for some in _chunks(ids):
            known |= {name: Status(status) for name, status in self._rows("statuses", dump(some))}
        return known

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

    def mark(self) -> Mark:
        return self._memo.mark

    def news(self, since: Mark) -> News:
        mark = self.mark()
        if since.life != mark.life or not 0 <= since.version <= mark.version:
            return News(mark, anything=True)
        if since == mark:
            return News(mark)
        written = self._memo.written(since.version, self._written)
        news = written.news(mark)
        news.lanes |= self._lane_keys(written.lanes)
        return news

    def _version(self) -> int:
        """Of the last transaction that wrote."""
        row = self._row("version")
        return 0 if row is None or row[0] is None else int(row[0])

    def _written(self, since: int) -> Written:
        """What was written after a version."""
        return read_written(since, self._rows("changes", since))

    def _lane_keys(self, ids: Iterable[int]) -> set[LaneKey]:
        return {lane_key_of(key) for (key,) in self._rows("lane_keys", dump(sorted(ids)))}

    def _numbers(self) -> dict[str, int]:
        """The next number of each name."""
        return self._memo.get("numbers", lambda: dict(self._rows("numbers")))

    # The queue in the planner's order

    def lanes(
        self, age_from: str, window: int, keys: Iterable[LaneKey] | None = None
    ) -> tuple[Lane, ...]:
        if keys is None:
            rows = self._rows("lanes")
        else:
            rows = [row for key in keys for row in self._rows("lane", key_text(key))]
        return tuple([self._lane(row, age_from, window) for row in rows])

    def _lane(self, row: Row, age_from: str, window: int) -> Lane:
        """A lane with its first tasks, which an index holds in their order."""
        lane, key, ready = row
        entries = tuple(map(Entry._make, self._rows(f"window_{age_from}", lane, window)))
        return Lane(lane_key_of(key), ready, entries, entries)

    def wait_counts(self) -> tuple[WaitCount, ...]:
        counts = []
        for code, count in self._rows("wait_codes"):
            first = tuple(name for (name,) in self._rows("wait_first", code))
            until = self._row("wait_until", code)
            counts.append(WaitCount(code, count, first, until[0] if until else None))
        return tuple(counts)

    # Attempts and usage

    def attempt(self, lease: str) -> Attempt | None:
        row = self._row("attempt", lease)
        if row is None:
            return None
        attempt = attempt_of(row)
        if attempt.ended_at is None:
            self._open[attempt.task] = attempt
        return attempt

    def attempts(self, task: str) -> list[Attempt]:
        return [attempt_of(row) for row in self._rows("attempts", task)]

    def open_attempts(self, tasks: Iterable[str] | None = None) -> list[Attempt]:
        if tasks is None:
            rows = self._rows("open_attempts")
        else:
            rows = [
                row for some in _chunks(tasks) for row in self._rows("open_attempts_of", dump(some))
            ]
        attempts = [attempt_of(row) for row in rows]
        self._open |= {attempt.task: attempt for attempt in attempts}
        return attempts

    def ended_attempts(self, since: Instant, limit: int) -> list[tuple[Attempt, Task]]:
        attempts = [attempt_of(row) for row in self._rows("ended_attempts", since, limit)]
        tasks = self.tasks({attempt.task for attempt in attempts})
        return [(attempt, tasks[attempt.task]) for attempt in attempts]

    def recent(self, project: str, kind: str, agent: str | None, limit: int) -> list[HistoryRow]:
        rows = self._rows("recent", project, kind, agent, limit)
        return [HistoryRow(row[0], row[1], row[2], tuple(row[3:7]), row[7]) for row in rows]

    def usage(self, scope: str, since: Instant | None) -> list[Booking]:
        rows = self._rows("usage", scope, -(1 << 62) if since is None else since)
        return [booking_of(row) for row in rows]

    def usage_sums(self, prefix: str, since: Instant) -> dict[str, Booking]:
        scopes = [scope for (scope,) in self._rows("scopes", prefix)]
        rows = [self._row("usage_sum", scope, since) for scope in scopes]
        return {row[0]: booking_of(row) for row in rows if row is not None}

    # Small tables, events, decisions, values

    def table(self, kind: type[Small]) -> dict[str, Small]:
        return dict(self._table(kind))

    def _table(self, kind: type[Small]) -> dict[str, Small]:
        """The rows as the cache has them."""
        name, read, _ = CODECS[kind]

        def rows() -> dict[str, Small]:
            values = cast("list[Small]", [read(row) for row in self._rows(f"all_{name}")])
            return {key_of(value): value for value in values}

        return self._memo.get(kind.__name__, rows)

    def events(
        self, after: int = 0, limit: int = 1000, task: str | None = None, last: bool = False,
        kind: str | None = None,
    ) -> list[Event]:  # fmt: skip
        name = ("last_events" if last else "events") + ("_of_task" if task is not None else "")
        values = (after, kind, limit) if task is None else (task, after, kind, limit)
        rows = self._rows(name, *values)
        return [_event(row) for row in (reversed(rows) if last else rows)]

    def decisions(self, after: int = 0, limit: int = 1000) -> list[Decision]:
        return [_decision(row) for row in self._rows("decisions", after, limit)]

    def value(self, name: str) -> Any:
        row = self._memo.get(value_name(name), lambda: self._row("value", name))
        return None if row is None else parse(row[0])

    def _with_leases(self, rows: list[Row]) -> list[Task]:
        """Tasks from rows; those in flight with the lease of their open attempt."""
        flying = [row[1] for row in rows if row[4] in ("leased", "running")]
        unread = [name for name in flying if name not in self._open]
        for row in self._rows("open_attempts_of", dump(unread)) if unread else ():
            self._open[row[2]] = attempt_of(row)
        leases = {name: lease_of(self._open[name]) for name in flying if name in self._open}
        return [task_of(row, leases.get(row[1])) for row in rows]


def _event(row: Row) -> Event:
    number, at, kind, task, project, data = row
    return Event(number, at, kind, task, project, parse(data))


def _decision(row: Row) -> Decision:
    number, at, base, policy, planner, lanes, rest, plan, digests = row
    return Decision(number, at, base, policy, planner, lanes, rest, plan, parse(digests))


#: Statuses that have an index of their own, and what it takes to be allowed to use it.
_LIVE = frozenset({Status.LEASED, Status.RUNNING, Status.PARKED})
_OF_INDEX_LIVE = "status IN ('leased', 'running', 'parked')"


def _conditions(which: Filter) -> tuple[str, list[object]]:
    """The filter as SQL with its values; names of columns are ours, values are bound."""
    conditions: list[tuple[str, list[object]]] = []
    if which.status:
        conditions.append((f"status IN ({_marks(which.status)})", [str(s) for s in which.status]))
        if _LIVE.issuperset(which.status):
            conditions.append((_OF_INDEX_LIVE, []))
    columns = {
        "project": which.project, "kind": which.kind, "in_group": which.group,
        "pool": which.pool, "agent": which.agent, "parent": which.parent,
    }  # fmt: skip
    conditions += [
        (f"{name} = ?", [wanted]) for name, wanted in columns.items() if wanted is not None
    ]
    if which.wait == "":
        conditions.append(("lane IS NOT NULL", []))
    elif which.wait is not None:
        conditions.append(("wait = ? AND wait <> ''", [which.wait]))
    if which.held_lanes is not None:
        keys = dump([key_text(key) for key in which.held_lanes])
        lanes = "SELECT id FROM lanes WHERE key IN (SELECT value FROM json_each(?))"
        conditions.append((f"lane IN ({lanes})", [keys]))
    text = "".join(f" AND {condition}" for condition, _ in conditions)
    return text, [value for _, values in conditions for value in values]


def _marks(items: Sequence[object]) -> str:
    return ", ".join("?" * len(items))


def _chunks(items: Iterable[str], size: int = 500) -> Iterator[list[str]]:
    """Items in lists that one query can take."""
    listed = list(items)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]
