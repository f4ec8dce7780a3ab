"""The SQLite store: one file, WAL, every promise durable before it is made."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.clock import SYSTEM, Clock, Waitable
from fairlane.model.errors import Refused
from fairlane.model.record import NamedTuple
from fairlane.store.sql.changes import Memo
from fairlane.store.sql.compacting import SqlTransaction
from fairlane.store.sql.reading import SqlReading, read_statements
from fairlane.store.sql.rows import Damaged
from fairlane.store.sqlite import file, lock, migrate
from fairlane.store.sqlite.file import explain, is_busy, is_damage, refuse_emptied

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlane.clock import Clock, Waitable
    from fairlane.file_watch import WriteWatch


#: How soon the database is asked after a write to its log, whose commit follows; then less and
#: less often, for so long.
COMMIT_SECONDS, RESTLESS_SECONDS = 0.001, 0.1
#: How often it is asked where the kernel tells of writes, and where it cannot.
LOOK_SECONDS, POLL_SECONDS = 0.25, 0.015


class Changes:
    """The write-ahead log of one store, watched from the first wait on."""

    def __init__(self, log: Path, stamp: Callable[[], int]) -> None:
        self._log, self._stamp = log, stamp
        self._watch: WriteWatch | None = None
        self._written_at = float("-inf")

    def wait(
        self, since: int, timeout: float | None, clock: Clock, others: tuple[Waitable, ...]
    ) -> int:
        """The stamp when it differs, one of the others is ready, or the time is over."""
        if self._watch is None:
            from fairlane.file_watch import WriteWatch

            self._watch = WriteWatch.of(self._log)
        began = clock.monotonic()
        watched = () if self._watch is None else (self._watch,)
        while (stamp := self._stamp()) == since:
            now = clock.monotonic()
            left = float("inf") if timeout is None else timeout - (now - began)
            if left <= 0:
                break
            ready = clock.wait(min(left, self._pause(now)), *watched, *others)
            if self._watch in ready and self._watch is not None:
                self._watch.drain()
                self._written_at = clock.monotonic()
            if any(waitable is not self._watch for waitable in ready):
                break
        return stamp

    def close(self) -> None:
        """Watch nothing more."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _pause(self, now: float) -> float:
        if self._watch is None:
            return POLL_SECONDS
        since = now - self._written_at
        return max(COMMIT_SECONDS, since / 4) if since < RESTLESS_SECONDS else LOOK_SECONDS


#: How long a transaction waits for another process, and for one that a signal has stopped.
BUSY_SECONDS, STOPPED_SECONDS = 30.0, 5.0
#: The page cache: large enough for the heads of a thousand lanes.
CACHE_KIB = 16 * 1024


@cache
def statements() -> dict[str, str]:
    """Every statement of `queries.sql` by its name."""
    return read_statements(migrate.HERE / "queries.sql")


class _Words(NamedTuple):
    """How a transaction begins, commits, and rolls back."""

    begin: str
    end: str
    undo: str


_WHOLE = _Words("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
_PART = _Words("SAVEPOINT part", "RELEASE part", "ROLLBACK TO part")


class SqliteStore:
    """One connection; threads take turns, processes share the file."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self.path = path
        self.connection = connection
        self._busy_seconds = busy_seconds
        self._turn = threading.RLock()
        self._changes = Changes(Path(f"{path}-wal"), self.stamp)
        self._memo = Memo()
        self.shared = False  # whether a shared commit is open
        self._verified = self._damaged = False

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        busy_seconds: float = BUSY_SECONDS,
        say: Callable[[str], None] | None = None,
        permit: Callable[[Path], None] = lambda path: None,
    ) -> SqliteStore:
        """The store in this file, made or, where `permit` raises nothing, migrated."""
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
                current = _is_current(connection)
                if not current:
                    migrate.refuse_foreign(connection, path)
                _refuse(file.missing_pages(connection, path))
                if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    connection.execute("PRAGMA journal_mode = WAL")
                if not current:
                    migrate.prepare(connection, path, say or _say, permit)
            except BaseException:
                file.close_unchanged(connection, path)
                raise
        _wait_at_most(connection, min(busy_seconds, STOPPED_SECONDS))
        return cls(path, connection, busy_seconds)

    @contextmanager
    def read(self) -> Iterator[SqlReading]:
        """A consistent view of the file."""
        with self._turn, explained(self.path, self._found_damage):
            if self.shared:
                yield self._reading()
                return
            self.connection.execute("BEGIN")
            try:
                yield self._reading()
            finally:
                if self.connection.in_transaction:  # an error may have ended it
                    self.connection.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[SqlTransaction]:
        """One transaction: durable when the block ends, undone when it raises.

        The first one verifies the file; processes that only read do not wait for that.
        """
        with self._turn, explained(self.path, self._found_damage):
            if not self._verified:
                self.verify(fully=False)
            begin, end, undo = _PART if self.shared else _WHOLE
            self._begin(begin)
            writing = None
            try:
                data_version = self._data_version()
                self._memo.begin((data_version, self.connection.total_changes))
                writing = SqlTransaction(self.connection, statements(), self._memo)
                yield writing
                version = writing.finish()
                self.connection.execute(end)
                self._memo.commit((data_version, self.connection.total_changes), version)
            except BaseException:
                self._undo(undo, writing is not None and writing.told)
                raise

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Transactions of this block are durable together when it ends; a failed one is undone."""
        with self._turn, explained(self.path, self._found_damage):
            self.verify(fully=False)
            self._begin(_WHOLE.begin)
            self.shared = True
            try:
                yield
                self.connection.execute(_WHOLE.end)  # an error if one of them lost everything
            except BaseException:
                self._undo(_WHOLE.undo, True)
                raise
            finally:
                self.shared = False

    def _begin(self, words: str) -> None:
        """Begin to write; a process that is stopped holds the lock too long to be waited for."""
        try:
            self.connection.execute(words)
        except sqlite3.OperationalError as error:
            left = self._busy_seconds - STOPPED_SECONDS
            holder = lock.holder_of(self.path)
            if not is_busy(error) or left <= 0 or (holder is not None and holder.stopped):
                raise
            _wait_at_most(self.connection, left)
            try:
                self.connection.execute(words)
            finally:
                _wait_at_most(self.connection, STOPPED_SECONDS)

    def _reading(self) -> SqlReading:
        self._memo.begin((self._data_version(), self.connection.total_changes))
        return SqlReading(self.connection, statements(), self._memo)

    def _data_version(self) -> int:
        """Changes whenever another connection has committed."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def _undo(self, words: str, told: bool) -> None:
        """`told`: somebody has read of what is undone."""
        if told:
            self._memo.doubt()
        else:
            self._memo.clear()
        if self.connection.in_transaction:  # an error may have ended it
            self.connection.execute(words)

    def stamp(self) -> int:
        """Changes whenever another process has written."""
        with self._turn, explained(self.path):
            return self._data_version()

    def wait_for_change(
        self, since: int, timeout: float | None, *others: Waitable, clock: Clock = SYSTEM
    ) -> int:
        """The stamp when another process has written, a waitable is ready, or the time is over."""
        return self._changes.wait(since, timeout, clock, others)

    def verify(self, fully: bool = True) -> None:
        """Refuse a damaged file; not `fully`: check once, unless another process just did.

        A check of every page takes milliseconds for a small file, and too long for every command
        that writes to a large one.
        """
        with self._turn, explained(self.path, self._found_damage), reachable(self.path):
            if fully or (not self._verified and file.needs_check(self.path)):
                _refuse(file.damage(self.connection, self.path))
                file.record_check(self.path)
            self._verified = True

    def check(self) -> list[str]:
        """The problems of the file; empty: none."""
        with self._turn, explained(self.path, self._found_damage):
            damage = file.damage(self.connection, self.path)
            return [f"damaged: {damage}"] if damage else file.problems(self.connection)

    def backup(self, target: Path) -> None:
        """A consistent copy while others work; a copy of a damaged file is no backup."""
        self.verify()
        with self._turn, explained(self.path), reachable(target):
            migrate.copy(self.connection, target)

    def close(self) -> None:
        """Nothing more is asked of it; a damaged file is left as it is."""
        self._changes.close()
        if self._damaged:
            file.close_unchanged(self.connection, self.path)
        else:
            self.connection.close()

    def _found_damage(self) -> None:
        self._damaged, self._verified = True, False


def _wait_at_most(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000):d}")


def _is_current(connection: sqlite3.Connection) -> bool:
    """Whether the file is ours, and has the schema that this program writes."""
    of_file = "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
    found = connection.execute(of_file).fetchone()
    return bool(found == (migrate.APPLICATION_ID, migrate.SCHEMA))


def _refuse(damage: str) -> None:
    if damage:
        raise Damaged(damage)


def _say(message: str) -> None:
    print(message, file=sys.stderr)


@contextmanager
def explained(path: Path, damaged: Callable[[], None] | None = None) -> Iterator[None]:
    """Errors of the database become errors of the product; `damaged` is called if it is that."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise Refused(f"the store refuses this: {error}", "Nothing was changed.") from error
    except (sqlite3.DatabaseError, Damaged) as error:
        if damaged is not None and is_damage(error):
            damaged()
        raise explain(error, path) from error


@contextmanager
def reachable(path: Path) -> Iterator[None]:
    """Errors of the folder become errors of the product."""
    try:
        yield
    except OSError as error:
        raise file.unreachable(error, path) from error
