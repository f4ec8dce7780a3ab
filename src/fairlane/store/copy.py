"""Copy: what a store holds of some tasks, as a value that any store can take in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fairlane.model.project import (
    Group,
    History,
    Pause,
    PolicyText,
    Pool,
    Project,
    SmallRow,
    WorkerRow,
)
from fairlane.model.record import dataclass
from fairlane.model.task import Attempt
from fairlane.store.base import Booking, Placed, Reading, Writing


@dataclass(frozen=True, slots=True)
class Content:
    """Rows of a store. Events and decisions are not among them: they say how it came to be."""

    rows: tuple[SmallRow, ...]
    tasks: tuple[Placed, ...]  # by seq
    attempts: tuple[Attempt, ...]  # by fence
    bookings: tuple[Booking, ...]
    values: Mapping[str, object]


def read_content(reading: Reading, tasks: Iterable[str], values: Collection[str] = ()) -> Content:
    """These tasks with their attempts, all small tables, all usage, and some values by name."""
    found = (reading.placed(task) for task in sorted(set(tasks)))
    placed = sorted((row for row in found if row is not None), key=lambda row: row.task.seq)
    tried = (row.task.id for row in placed if row.task.attempts)
    attempts = [attempt for task in tried for attempt in reading.attempts(task)]
    scopes = sorted(reading.usage_sums("", 0))
    return Content(
        rows=_small_rows(reading),
        tasks=tuple(placed),
        attempts=tuple(sorted(attempts, key=lambda attempt: attempt.fence)),
        bookings=tuple(row for scope in scopes for row in reading.usage(scope, None)),
        values={name: reading.value(name) for name in sorted(values)},
    )


def write_content(tx: Writing, content: Content) -> None:
    """Put everything into a store that has nothing of it; its counters begin after these rows."""
    tx.put(*content.rows)
    tx.put_clocks(
        {
            row.name: (row.clock, row.present)
            for row in content.rows
            if isinstance(row, Project) and row.clock is not None
        }
    )
    tx.insert(content.tasks)
    tx.put_attempts(content.attempts)
    tx.book(content.bookings)
    for name, value in content.values.items():
        tx.put_value(name, value)
    _begin_after(tx, "seq", [row.task.seq for row in content.tasks])
    _begin_after(tx, "fence", [attempt.fence for attempt in content.attempts])


def _small_rows(reading: Reading) -> tuple[SmallRow, ...]:
    """The rows of all small tables, each table by its keys; what others name comes first."""
    table, tables = reading.table, list[Mapping[str, SmallRow]]()
    tables += [table(Group), table(Project), table(Pool), table(WorkerRow), table(Pause)]
    tables += [table(History), table(PolicyText)]
    return tuple(rows[key] for rows in tables for key in sorted(rows))


def _begin_after(tx: Writing, name: str, used: Iterable[int]) -> None:
    """The next number of this name is larger than those that are used."""
    last = tx.number(name) - 1
    tx.number(name, max(0, max(used, default=0) - last - 1))
