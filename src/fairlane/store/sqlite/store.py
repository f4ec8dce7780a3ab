"""The SQLite store: one file, WAL, every promise durable before it is made."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fairlane.store.sqlite import migrate, whole
from fairlane.store.sqlite.errors import Damaged, explained, reachable, refuse_emptied
from fairlane.store.sqlite.memo import Memo
from fairlane.store.sqlite.reading import SqliteReading
from fairlane.store.sqlite.writing import SqliteWriting

#: How long a transaction waits for another process.
BUSY_SECONDS = 30.0
#: How many times in a row the log file is trusted to tell of writes.
STAMPS_TRUSTED = 10
#: How many times the database is asked after its log has changed.
STAMPS_ASKED = 30
#: Pages that are kept in memory: enough for the heads of a thousand lanes.
CACHE_KIB = 16 * 1024


class _Words(NamedTuple):
    """How a transaction begins, is kept, and is undone."""

    begin: str
    end: str
    undo: str


_WHOLE = _Words("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
_PART = _Words("SAVEPOINT part", "RELEASE part", "ROLLBACK TO part")


class SqliteStore:
    """One connection; threads take turns, processes share the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection
        self._turn = threading.RLock()
        self._log = f"{path}-wal"
        self._log_mark: tuple[int, int] | None = (0, -1)
        self._stamp = self._stamps = self._asks = 0
        self._memo = Memo()
        self._shared = False
        self._verified = self._damaged = False

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        busy_seconds: float = BUSY_SECONDS,
        say: Callable[[str], None] | None = None,
    ) -> SqliteStore:
        """The store in this file, made or migrated if it must be."""
        with explained(path), reachable(path):
            refuse_emptied(path)
            if not path.exists():
                path.touch(mode=0o600)
            connection = sqlite3.connect(
                path, timeout=busy_seconds, isolation_level=None, check_same_thread=False,
                cached_statements=256,
            )  # fmt: skip
            try:
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(f"PRAGMA cache_size = -{CACHE_KIB:d}")
                migrate.refuse_foreign(connection, path)
                _refuse(whole.missing_pages(connection, path))
                if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    connection.execute("PRAGMA journal_mode = WAL")
                migrate.prepare(connection, path, say or _say)
            except BaseException:
                whole.close_unchanged(connection, path)
                raise
        return cls(path, connection)

    @contextmanager
    def read(self) -> Iterator[SqliteReading]:
        """A consistent view of the file."""
        with self._turn, explained(self.path, self._found_damage):
            if self._shared:
                self._memo.begin(self.connection)
                yield SqliteReading(self.connection, self._memo)
                return
            self.connection.execute("BEGIN")
            try:
                self._memo.begin(self.connection)
                yield SqliteReading(self.connection, self._memo)
            finally:
                if self.connection.in_transaction:  # an error may have ended it
                    self.connection.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[SqliteWriting]:
        """One transaction: durable when the block ends, undone when it raises.

        The first one verifies the file; processes that only read do not wait for that.
        """
        with self._turn, explained(self.path, self._found_damage):
            if not self._verified:
                self.verify(fully=False)
            begin, end, undo = _PART if self._shared else _WHOLE
            self.connection.execute(begin)
            try:
                self._memo.begin(self.connection)
                writing = SqliteWriting(self.connection, self._memo)
                yield writing
                writing.finish()
                self.connection.execute(end)
                self._memo.commit(self.connection)
            except BaseException:
                self._undo(undo)
                raise

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Transactions of this block are durable together when it ends; a failed one is undone."""
        with self._turn, explained(self.path, self._found_damage):
            self.verify(fully=False)
            self.connection.execute(_WHOLE.begin)
            self._shared = True
            try:
                yield
                self.connection.execute(_WHOLE.end)  # an error if one of them lost everything
            except BaseException:
                self._undo(_WHOLE.undo)
                raise
            finally:
                self._shared = False

    def _undo(self, words: str) -> None:
        self._memo.clear()
        if self.connection.in_transaction:  # an error may have ended it
            self.connection.execute(words)

    @property
    def written(self) -> Path | None:
        """The write-ahead log."""
        return Path(self._log)

    def stamp(self) -> int:
        """Another number than before when somebody else has written.

        Asked many times a second by a daemon: the log file tells cheaply that nothing was
        written; now and then the database itself is asked, for writes within one tick of it.
        """
        mark = _mark(self._log)
        self._stamps += 1
        if mark != self._log_mark:  # somebody writes: it shows when the commit is through
            self._log_mark, self._asks = mark, STAMPS_ASKED
        if self._asks or self._stamps % STAMPS_TRUSTED == 0:
            self._asks = max(0, self._asks - 1)
            with self._turn, explained(self.path):
                self._stamp = int(self.connection.execute("PRAGMA data_version").fetchone()[0])
        return self._stamp

    def verify(self, fully: bool = True) -> None:
        """Refuse a damaged file; not `fully`: check once, unless another process just did.

        A check of every page takes milliseconds for a small file, and too long for every command
        that writes to a large one.
        """
        with self._turn, explained(self.path, self._found_damage), reachable(self.path):
            if fully or (not self._verified and whole.needs_check(self.path)):
                _refuse(whole.damage(self.connection, self.path))
                whole.record_check(self.path)
            self._verified = True

    def check(self) -> list[str]:
        """What is wrong with the file; nothing: it is content."""
        from fairlane.store.sqlite.check import problems

        with self._turn, explained(self.path, self._found_damage):
            damage = whole.damage(self.connection, self.path)
            return [f"damaged: {damage}"] if damage else problems(self.connection)

    def backup(self, target: Path) -> None:
        """A consistent copy while others work; a copy of a damaged file is no backup."""
        self.verify()
        with self._turn, explained(self.path), reachable(target):
            migrate.copy(self.connection, target)

    def close(self) -> None:
        """Nothing more is asked of it; a damaged file is left as it is."""
        if self._damaged:
            whole.close_unchanged(self.connection, self.path)
        else:
            self.connection.close()

    def _found_damage(self) -> None:
        self._damaged, self._verified = True, False


def _refuse(damage: str) -> None:
    if damage:
        raise Damaged(damage)


def _mark(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _say(message: str) -> None:
    print(message, file=sys.stderr)
