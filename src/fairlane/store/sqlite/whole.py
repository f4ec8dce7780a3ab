"""Whole: whether a file lacks pages or has damaged ones. Nothing in it is changed.

Only SQLite opens the database file: when a process closes any handle of a file, all locks that its
connections have on it are gone. The log has no locks, so it may be read here.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairlane.clock import SystemClock
from fairlane.model.instant import HOUR

#: Every command that writes checks all pages of a file up to this size. It takes 7 ms a MiB, the
#: command itself 100 ms.
SMALL_BYTES = 2 << 20
#: A larger file is checked by the first such command after this time: 0.4 s for 100,000 tasks.
CHECK_EVERY = HOUR
_LOG_HEADER, _FRAME_HEADER = 32, 24


def damage(connection: sqlite3.Connection, path: Path) -> str:
    """What is wrong with the file after a check of every page; empty: nothing."""
    with _view(connection):
        text = missing_pages(connection, path)
        if not text:
            rows = connection.execute("PRAGMA integrity_check(1)").fetchall()
            text = "; ".join(row[0] for row in rows if row[0] != "ok")
    return " ".join(text.replace("*** in database main ***", "").split())


def missing_pages(connection: sqlite3.Connection, path: Path) -> str:
    """Whether pages are neither in the file nor in its log; costs the same for every size.

    SQLite accepts a file whose last page is only there in part. A healthy file can be shorter than
    its pages during a checkpoint, and after a crash in one: then the log has them, and while a
    view is open nobody writes over that log.
    """
    with _view(connection):
        size = int(connection.execute("PRAGMA page_size").fetchone()[0])
        pages = int(connection.execute("PRAGMA page_count").fetchone()[0])
        length = path.stat().st_size
        missing = range(length // size + 1, pages + 1)
        if not missing or _log_pages(path, size).issuperset(missing):
            return ""
    return f"{pages * size - length:,} of {pages * size:,} bytes are missing at its end"


def is_empty(path: Path) -> bool:
    """Whether there is nothing in a file; SQLite takes a single byte for nothing."""
    return 0 <= _bytes(path) <= 1


def has_log(path: Path) -> bool:
    """Whether there is anything in a file's log; SQLite removes the log of an empty file."""
    return _bytes(_log(path)) > 0


def is_whole(path: Path) -> bool:
    """Whether a copy that nobody writes to can be used."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return not is_empty(path) and not damage(connection, path)
    except sqlite3.Error:
        return False
    finally:
        connection.close()


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, not even when it is closed."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)


def close_unchanged(connection: sqlite3.Connection, path: Path) -> None:
    """Close a connection, but leave the file and its log as they are.

    The last connection of all would copy the log into the file; here the last one cannot write.
    """
    if not has_log(path):
        connection.close()
        return
    last = read_only(path)
    try:
        with suppress(sqlite3.Error):
            last.execute("SELECT 1 FROM sqlite_schema").fetchone()
        connection.close()
    finally:
        last.close()


# The last check of a large file


def needs_check(path: Path) -> bool:
    """Whether a file is small, or nobody has checked it within the hour."""
    stat = path.stat()
    if stat.st_size <= SMALL_BYTES:
        return True
    try:
        mark = _mark(path)
        age = SystemClock().now() - mark.stat().st_mtime_ns // 1000
        return not (0 <= age < CHECK_EVERY and mark.read_text() == str(stat.st_ino))
    except OSError:
        return True


def record_check(path: Path) -> None:
    """Tell other processes that this large file was checked just now."""
    stat = path.stat()
    if stat.st_size > SMALL_BYTES:
        with suppress(OSError):  # a read-only folder: every process checks
            _mark(path).write_text(str(stat.st_ino))


def _mark(path: Path) -> Path:
    return path.with_name(f"{path.name}-checked")


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@contextmanager
def _view(connection: sqlite3.Connection) -> Iterator[None]:
    """One state of the file: the transaction that is open, or a new one."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:  # an error may have ended it
            connection.execute("ROLLBACK")


def _log_pages(path: Path, size: int) -> set[int]:
    """The pages in the log, by number; frames from before its last restart have another salt."""
    pages: set[int] = set()
    with suppress(OSError), _log(path).open("rb") as log:
        salt = log.read(_LOG_HEADER)[16:24]
        while len(frame := log.read(_FRAME_HEADER)) == _FRAME_HEADER and frame[8:16] == salt:
            pages.add(int.from_bytes(frame[:4], "big"))
            log.seek(size, os.SEEK_CUR)
    return pages


def _bytes(path: Path) -> int:
    """The size of a file; -1: there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1
