"""Writing: one transaction. It updates lanes and tallies once, before they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlane.model.errors import Refused
from fairlane.model.event import Event
from fairlane.model.instant import Instant
from fairlane.model.project import Droppable, PolicyText, Project, SmallRow, key_of
from fairlane.model.record import changed
from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Attempt, Lane, LaneKey, Status, Task
from fairlane.store.base import Booking, Decision, Placed, Tally
from fairlane.store.news import Mark, News
from fairlane.store.sql.changes import DROPPED_EVERY, KEPT, Memo, text_of, value_name
from fairlane.store.sql.reading import Connection, SqlReading
from fairlane.store.sql.rows import (
    CODECS,
    Row,
    attempt_row,
    body_of,
    dump,
    facts_of,
    key_text,
    task_row,
)

_FLYING = frozenset({Status.LEASED, Status.RUNNING})


class SqlWriting(SqlReading):
    """A transaction that writes; `finish` is called before it is committed."""

    def __init__(
        self, connection: Connection, statements: Mapping[str, str], memo: Memo | None = None
    ) -> None:
        super().__init__(connection, statements, memo)
        self._lane_ids: dict[LaneKey, int] = self._memo.get("lane ids", dict)
        self._taken: set[str] = set()  # names whose numbers were taken
        self._lane_deltas: dict[int, int] = {}
        self._tally_deltas: dict[Row, int] = {}  # status, wait, project, kind
        self._news = News()  # what this transaction has changed, lanes apart
        self._lanes_changed: set[int] = set()
        self._wrote = False
        self.told = False  # whether somebody has read of what may be undone
        self._any_need: bool | None = None  # whether any task needs another; None: not known
        self._stood: dict[str, Row] = {}  # id -> lane, status, wait, project, kind

    def _do(self, name: str, *values: object) -> None:
        self._wrote = True
        self._connection.execute(self._statements[name], values)

    def _do_many(self, name: str, rows: Sequence[Row]) -> None:
        if rows:
            self._wrote = True
            self._connection.executemany(self._statements[name], rows)

    # Tasks

    def insert(self, tasks: Sequence[Placed]) -> None:
        self._any_need = None
        rows, needs = [], []
        for placed in tasks:
            task = placed.task
            lane = self._enters(task, placed.wait)
            self._tally((str(task.status), placed.wait, task.project, task.kind), 1)
            self._tell(task.id, task.status, placed.wait, placed.due_at)
            rows.append(task_row(placed, lane))
            if task.needs or task.parent is not None:
                needs += _needs(task)
        self._do_many("insert_task", rows)
        self._do_many("add_need", needs)

    def save(self, tasks: Sequence[Placed], content: bool = False) -> None:
        if content:
            self._save_content([placed.task for placed in tasks])
        rows = []
        last = {placed.task.seq: placed for placed in tasks}
        for placed in last.values():
            task, wait, due_at = placed
            lane = self._moves(placed)
            rows.append(
                (
                    str(task.status), lane, wait, due_at, task.created_at, task.ready_since,
                    task.ended_at, task.failures, task.attempts, facts_of(task), task.seq,
                )
            )  # fmt: skip
        self._do_many("save_task", rows)

    def _save_content(self, tasks: Sequence[Task]) -> None:
        """What tasks say, and what they need by that."""
        self._any_need = None
        before = self.tasks(task.id for task in tasks).values()
        rows = [
            (
                task.project, task.kind, task.estimate_tokens, task.priority, task.depth,
                task.agent, task.pool, task.group, task.parent, body_of(task), task.prompt,
                task.seq,
            )
            for task in tasks
        ]  # fmt: skip
        self._do_many("rewrite_task", rows)
        self._do_many("drop_need", [need for task in before for need in _needs(task)])
        self._do_many("add_need", [need for task in tasks for need in _needs(task)])

    def number(self, name: str, count: int = 1) -> int:
        numbers = self._numbers()
        first = numbers.get(name, 1)
        if count:
            self._wrote = True
            numbers[name] = first + count
            self._taken.add(name)
        return first

    def _moves(self, placed: Placed) -> int | None:
        """Move a known task from its old lane to its new one."""
        task = placed.task
        stood = self._stood.pop(task.id, None) or self._row("stands", task.id)
        if stood is None:
            raise Refused(f"the store refuses this: no task {task.id!r}", "Nothing was changed.")
        lane, before = stood[0], stood[1:]
        for status, wait in (before[:2], (task.status, placed.wait)):
            self._tell(task.id, status, wait, placed.due_at)
        if lane is not None:
            self._lane_deltas[lane] = self._lane_deltas.get(lane, 0) - 1
        after = (str(task.status), placed.wait, task.project, task.kind)
        if before != after:
            self._tally(before, -1)
            self._tally(after, 1)
        return self._enters(task, placed.wait)

    def _with_leases(self, rows: list[Row]) -> list[Task]:
        """Tasks from rows; remembers their place for when they are saved."""
        for row in rows:
            self._stood[row[1]] = (row[5], row[4], row[6], row[2], row[3])
        return super()._with_leases(rows)

    def _enters(self, task: Task, wait: str) -> int | None:
        if wait or task.status is not Status.QUEUED:
            return None
        key = task.lane
        lane = self._lane_ids.get(key)
        if lane is None:
            lane = self._lane_ids[key] = self._lane_id(key_text(key))
        self._lane_deltas[lane] = self._lane_deltas.get(lane, 0) + 1
        return lane

    def _lane_id(self, text: str) -> int:
        row = self._row("lane_id", text)
        if row is not None:
            return int(row[0])
        self._wrote = True
        row = self._row("add_lane", text)
        assert row is not None
        return int(row[0])

    def _tell(self, task: str, status: str, wait: str, due_at: Instant | None) -> None:
        """A task was or is in this place."""
        if status in _FLYING:
            self._news.flights.add(task)
        if wait or due_at is not None or status == Status.PARKED:
            self._news.waits = True

    def _tally(self, cell: Row, by: int) -> None:
        self._tally_deltas[cell] = self._tally_deltas.get(cell, 0) + by

    def finish(self) -> int:
        """Everything that was put off; the version from now on."""
        self.flush()
        numbers = self._numbers()
        self._do_many("put_number", [(name, numbers[name]) for name in sorted(self._taken)])
        version = self.mark().version
        if not self._wrote:
            return version
        version += 1
        self._do("put_changes", version, text_of(self._news, self._lanes_changed))
        if version % DROPPED_EVERY == 0:
            self._do("drop_changes", version - KEPT)
        return version

    def news(self, since: Mark) -> News:
        news = super().news(since)
        if self._wrote:
            self.told = True
            news.include(self._news)
            news.lanes |= self._lane_keys(self._lanes_changed | self._lane_deltas.keys())
        return news

    def flush(self) -> None:
        """Lanes and tallies as of now."""
        if self._lane_deltas:
            rows = [(by, lane) for lane, by in self._lane_deltas.items() if by]
            self._lanes_changed |= self._lane_deltas.keys()
            self._lane_deltas = {}
            self._do_many("touch_lane", rows)
        if self._tally_deltas:
            # Raise counts first: no count falls below 0 in between.
            changed = [(*cell, by) for cell, by in self._tally_deltas.items() if by]
            self._tally_deltas = {}
            for row in sorted(changed, key=lambda row: -row[4]):
                if row[4] > 0:
                    self._do("tally", *row)
                else:
                    self._do("lower_tally", row[4], *row[:4])

    def dependents(self, task: str) -> list[str]:
        if self._any_need is None:
            self._any_need = self._row("any_need") is not None
        return super().dependents(task) if self._any_need else []

    def lanes(
        self, age_from: str, window: int, keys: Iterable[LaneKey] | None = None
    ) -> tuple[Lane, ...]:
        self.flush()
        return super().lanes(age_from, window, keys)

    def wait_counts(self) -> tuple[WaitCount, ...]:
        self.flush()
        return super().wait_counts()

    def tallies(self) -> list[Tally]:
        self.flush()
        return super().tallies()

    # Everything else

    def log(self, events: Sequence[Event]) -> int:
        if not events:
            return self.number("event", 0) - 1
        first = self.number("event", len(events))
        rows = [
            (number, event.at, event.kind, event.task, event.project, dump(event.data))
            for number, event in enumerate(events, first)
        ]
        self._do_many("log", rows)
        return first + len(events) - 1

    def put_attempts(self, attempts: Sequence[Attempt]) -> None:
        self._open = {}
        self._news.flights |= {attempt.task for attempt in attempts}
        self._do_many("put_attempt", [attempt_row(attempt) for attempt in attempts])

    def book(self, bookings: Sequence[Booking]) -> None:
        self._news.scopes |= {row.scope for row in bookings}
        rows = [
            (row.scope, row.minute, *row.tokens, row.usd, row.starts, row.completions)
            for row in bookings
        ]
        self._do_many("book", rows)

    def put(self, *rows: SmallRow) -> None:
        for row in rows:
            name, _, write = CODECS[type(row)]
            self._do(f"put_{name}", *write(row))
            self._news.change_row(type(row), key_of(row))
            if isinstance(row, PolicyText):  # the first text stays
                self._memo.drop(type(row).__name__)
            else:
                self._memo.update(type(row).__name__, key_of(row), row)

    def drop(self, kind: type[Droppable], key: str) -> None:
        self._memo.drop(kind.__name__)
        self._news.change_row(kind, key)
        self._do(f"drop_{CODECS[kind].name}", key)

    def put_clocks(self, clocks: Mapping[str, tuple[int, bool]]) -> None:
        projects = self._table(Project)
        for name, (clock, present) in clocks.items():
            if name in projects:
                self._news.change_row(Project, name)
                projects[name] = changed(projects[name], clock=clock, present=present)
        rows = [(clock, int(present), name) for name, (clock, present) in clocks.items()]
        self._do_many("put_clock", rows)

    def put_decision(self, decision: Decision, oldest: int = 0) -> None:
        self._do(
            "put_decision", decision.number, decision.at, decision.base, decision.policy,
            decision.planner, decision.lanes, decision.rest, decision.plan,
            dump(dict(decision.digests)),
        )  # fmt: skip
        if oldest:
            self._do("drop_decisions", oldest)

    def put_value(self, name: str, value: object) -> None:
        self._news.change_value(name)
        if value is None:
            self._memo.drop(value_name(name))
            self._do("drop_value", name)
        else:
            text = dump(value)
            self._memo.put(value_name(name), (text,))
            self._do("put_value", name, text)


def _needs(task: Task) -> list[tuple[str, int]]:
    named = (*task.needs, task.parent) if task.parent is not None else task.needs
    return [(needed, task.seq) for needed in dict.fromkeys(named)]
