"""agent-queue's database: opened for reading only, its tables as rows with the usual defaults."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND
from fairlane.service.conversion.base import UNCHANGED, Converted, number, renamed

MAGIC = b"SQLite format 3\0"
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
            self.tables[name] = [_row(columns, values) for values in cursor]
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
    if file.suffix == ".db":
        return True
    try:
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
    return connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 1').fetchone() is not None


def _address(file: Path) -> str:
    """The URL: immutable if no write-ahead log exists, because then nobody writes to it."""
    target = file.resolve()
    log = target.with_name(f"{target.name}-wal")
    used = log.exists() and log.stat().st_size
    return f"{target.as_uri()}?{'mode=ro' if used else 'immutable=1'}"
