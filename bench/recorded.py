"""Bare: the statements that the store really executes, recorded, then executed without us.

The store's connection is replaced with one that keeps every statement which writes, with its
values and its transactions. They are replayed on a copy of the file as it was before. So the bare
side has the same tables, indexes, rows and durability, reads nothing, and decides nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fairlane.engine.context import Context
from fairlane.store.sqlite.store import SqliteStore

#: Values of a statement, or of each time that it is executed.
Values = tuple[Any, ...]
Step = tuple[str, Values | list[Values], bool]  # text, values, whether it is executed for many
_SETTINGS = ("cache_size", "foreign_keys", "synchronous")
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH")
_PARTS = ("SAVEPOINT", "RELEASE", "ROLLBACK TO")


class Recording(sqlite3.Connection):
    """A connection that keeps what it writes, transaction by transaction."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.transactions: list[list[Step]] = []
        self._open: list[Step] = []

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        found = super().execute(sql, parameters)
        words = sql.lstrip().upper()
        if words.startswith("BEGIN"):
            self._open = [(sql, (), False)]
        elif words.startswith("COMMIT"):
            if len(self._open) > 1:
                self.transactions.append([*self._open, (sql, (), False)])
            self._open = []
        elif words.startswith(_PARTS):
            raise AssertionError(f"bench cannot replay {sql!r}")
        elif words.startswith("ROLLBACK"):
            self._open = []
        elif words.startswith(_WRITES):
            self._open.append((sql, tuple(parameters), False))
        return found

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        rows = [tuple(row) for row in parameters]
        self._open.append((sql, rows, True))
        return super().executemany(sql, rows)


@contextmanager
def recorded(context: Context, copy: Path, works: Iterable[Callable[[], object]]) -> Iterator[Bare]:
    """What each work writes, to be replayed on a copy."""
    store = context.store
    assert isinstance(store, SqliteStore)
    store.verify(fully=False)  # once a process: no part of what is measured
    with closing(sqlite3.connect(copy)) as target:
        store.connection.backup(target)
    store.connection, usual = _opened(store.path, store.connection, Recording), store.connection
    usual.close()
    assert isinstance(store.connection, Recording)
    recording, works_done = store.connection, []
    for work in works:
        recording.transactions = []
        work()
        works_done.append(recording.transactions)
    bare = _opened(copy, recording, sqlite3.Connection)
    if bare.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise AssertionError("the copy has no write-ahead log")
    replaying = Bare(bare, works_done)
    try:
        yield replaying
        replaying.check(recording)
    finally:
        bare.close()


class Bare:
    """Plain transactions: every call replays the next work."""

    def __init__(self, connection: sqlite3.Connection, works: list[list[list[Step]]]) -> None:
        self._connection = connection
        self.transactions = len(works[-1])  # in one work
        self._rest = iter(works)

    def __call__(self) -> None:
        """The same writes in the same transactions."""
        execute, executemany = self._connection.execute, self._connection.executemany
        for steps in next(self._rest):
            for sql, values, many in steps:
                if many:
                    executemany(sql, values)
                else:
                    execute(sql, values).fetchall()

    def check(self, recording: sqlite3.Connection) -> None:
        """Every work was replayed, and nothing differs."""
        if next(self._rest, None) is not None:
            raise AssertionError("not everything was replayed")
        same_rows(recording, self._connection)


def same_rows(one: sqlite3.Connection, other: sqlite3.Connection) -> None:
    """Both files hold the same rows in every table."""
    names = [name for (name,) in one.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for name in names:
        asked = f"SELECT * FROM {name}"
        if sorted(map(repr, one.execute(asked))) != sorted(map(repr, other.execute(asked))):
            raise AssertionError(f"the two sides do not write the same rows of {name}")


def _opened(
    path: Path, like: sqlite3.Connection, kind: type[sqlite3.Connection]
) -> sqlite3.Connection:
    """A connection to a file with the settings of another one."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256, factory=kind
    )
    for name in _SETTINGS:
        (value,) = like.execute(f"PRAGMA {name}").fetchone()
        connection.execute(f"PRAGMA {name} = {value}")
    return connection
