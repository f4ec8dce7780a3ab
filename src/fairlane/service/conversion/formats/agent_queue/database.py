"""agent-queue's database: opened for reading only, its tables as rows with the usual defaults."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND
from fairlane.service.conversion.base import UNCHANGED, Converted, number, renamed

MAGIC = b"SQLite format 3\0"
#: No value is larger, and no table has more rows: columns that are computed can be of any size.
VALUE_BYTES_MAX, ROWS_MAX = 10_000_000, 2_000_000
#: The tables that it must have, with the columns that nothing can stand in for.
_NEEDED = {
    "projects": ("id", "status"),
    "tasks": ("id", "project_id", "title", "status"),
    "task_dependencies": ("task_id", "depends_on_task_id"),
    "token_ledger": ("tokens_used", "timestamp"),
}
#: Tables that are read where they exist, and those that say nothing about work.
_OPTIONAL = (
    "agents", "workspaces", "agent_workspaces", "archived_tasks", "task_criteria", "task_context",
)  # fmt: skip
_SILENT = ("alembic_version",)
#: What a column is that a database of another age does not have, or that is empty.
_UNSAID = {
    "credit_weight": 1.0, "max_concurrent_agents": 2, "retry_count": 0, "max_retries": 3,
}  # fmt: skip

#: Where ids of projects and of tasks are.
_IDS = {
    "project": (
        ("projects", "id"), ("tasks", "project_id"), ("workspaces", "project_id"),
        ("agent_workspaces", "project_id"), ("token_ledger", "project_id"),
    ),
    "task": (
        ("tasks", "id"), ("tasks", "parent_task_id"), ("task_dependencies", "task_id"),
        ("task_dependencies", "depends_on_task_id"), ("token_ledger", "task_id"),
        ("archived_tasks", "id"), ("task_context", "task_id"), ("task_criteria", "task_id"),
    ),
}  # fmt: skip

Row = dict[str, object]


class Database:
    """The rows of each table."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.tables: dict[str, list[Row]] = {}
        self.others: list[str] = []  # tables that hold something and are not read
        try:
            with closing(sqlite3.connect(_address(file), uri=True)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.text_factory = lambda data: data.decode("utf-8", "replace")
                self._read(connection)
        except sqlite3.Error as error:
            raise Invalid(f"{file}: not agent-queue's database: {error}", UNCHANGED) from error

    def _read(self, connection: sqlite3.Connection) -> None:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        known = [name for (name,) in connection.execute(query)]
        for name in (*_NEEDED, *(table for table in _OPTIONAL if table in known)):
            if name not in known:  # a view of that name may have no end
                raise sqlite3.OperationalError(f"no such table: {name}")
            cursor = connection.execute(f"SELECT * FROM {name}")
            columns = [column[0] for column in cursor.description]
            for needed in _NEEDED.get(name, ()):
                if needed not in columns:
                    message = f"{self.file}: a table without column {needed!r}: {name}"
                    raise Invalid(message, UNCHANGED)
            rows = islice(cursor, ROWS_MAX + 1)
            self.tables[name] = [_row(columns, values) for values in rows]
            if len(self.tables[name]) > ROWS_MAX:
                raise Invalid(f"{self.file}: more than {ROWS_MAX:,} rows: {name}", UNCHANGED)
        for name in known:
            if name not in (*self.tables, *_SILENT) and _holds_rows(connection, name):
                self.others.append(name)

    def rows(self, table: str) -> Iterator[tuple[str, Row]]:
        """Each row with where it is; none of a table that is not there."""
        for at, row in enumerate(self.tables.get(table, ()), start=1):
            yield f"{self.file.name}, {table} row {at}", row

    def give_names(self, converted: Converted) -> None:
        """Projects and tasks whose ids cannot be names here get others, wherever they occur."""
        for what, places in _IDS.items():
            ids = [row.get("id") for row in self.tables[places[0][0]]]
            found = renamed(ids, what, converted)
            for table, column in places if found else ():
                for row in self.tables.get(table, ()):
                    own = row.get(column)
                    if isinstance(own, str) and own in found:
                        row[column] = found[own]

    def odd_columns(self, table: str, known: Collection[str]) -> list[str]:
        """The columns without a counterpart that hold something."""
        rows = self.tables.get(table, ())
        names = dict.fromkeys(name for row in rows for name, said in row.items() if said)
        return [name for name in names if name not in known]


def is_database(file: Path) -> bool:
    """Whether it is one of SQLite, or is to be one: an empty one has no table."""
    try:
        if not file.is_file():
            return False  # a pipe, a device: refused by whoever reads it
        if file.suffix == ".db":
            return True
        with file.open("rb") as handle:
            return handle.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise Invalid(f"{file}: cannot be read: {error.strerror}", UNCHANGED) from error


def instant(seconds: object) -> int:
    """Seconds there, microseconds here."""
    return round(number(seconds) * SECOND)


def _row(columns: list[str], values: tuple[object, ...]) -> Row:
    said = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
    return _UNSAID | said


def _holds_rows(connection: sqlite3.Connection, table: str) -> bool:
    quoted = table.replace('"', '""')
    try:
        return connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 1').fetchone() is not None
    except sqlite3.OperationalError:  # one of a module that is not here: it may hold anything
        return True


def _address(file: Path) -> str:
    """The URL: immutable if there is no log beside it, because then nobody writes to it."""
    target = file.resolve()
    logs = [target.with_name(target.name + ending) for ending in ("-wal", "-journal")]
    used = any(log.exists() and log.stat().st_size for log in logs)
    return f"{target.as_uri()}?{'mode=ro' if used else 'immutable=1'}"
