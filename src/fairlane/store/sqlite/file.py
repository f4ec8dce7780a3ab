"""The database file: its errors as ours, whether it is complete, whether its rows agree.

Only SQLite opens the database file: when a process closes any handle of a file, all locks that its
connections have on it are gone. The log has no locks, so it may be read here.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairlane.careful_files import opener
from fairlane.clock import SystemClock
from fairlane.model.errors import NO_ROOM, FairlaneError, Refused, TryLater
from fairlane.model.instant import HOUR
from fairlane.store.sql.rows import Damaged
from fairlane.store.sqlite import lock

_CORRUPT = (
    "malformed", "not a database", "file is encrypted", "disk image", "decode to UTF-8",
    "unsupported file format",
)  # fmt: skip
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_FREE_SOME = "Free some disk space."


def unreachable(error: OSError, path: Path) -> FairlaneError:
    """The error that a person can act on, of one of the folder."""
    why = error.strerror or str(error)
    if error.errno in NO_ROOM:
        return TryLater(f"no room left to write {path}", _FREE_SOME, "disk_full")
    if error.errno in _FORBIDDEN:
        return _read_only(path, why)
    hint = "Check that its folder exists."
    return TryLater(f"{path} cannot be opened: {why}", hint, "unreachable")


def explain(error: Exception, path: Path) -> FairlaneError:
    """The error that a person can act on."""
    text = str(error)
    if is_damage(error):
        return corrupt(path, text)
    if is_busy(error):
        return lock.busy(path, text)
    if "full" in text:
        return TryLater(f"no room left to write {path}", _FREE_SOME, "disk_full")
    if "readonly" in text:
        return _read_only(path, text)
    if "unable to open" in text:
        if path.parent.is_dir() and not os.access(path.parent, os.W_OK):
            return _read_only(path, text)
        hint = "Check that its folder exists."
        return TryLater(f"{path} cannot be opened: {text}", hint, "unreachable")
    if "I/O error" in text:
        hint = "Nothing was changed. Look for a full disk, a quota, or a disk that fails."
        return TryLater(f"{path}: {text}", hint, "io_error")
    return FairlaneError(f"{path}: {text}", "`fairlane doctor` looks closer.", "store")


def is_busy(error: Exception) -> bool:
    return "locked" in str(error) or "busy" in str(error)


def is_damage(error: Exception) -> bool:
    return isinstance(error, Damaged) or any(word in str(error) for word in _CORRUPT)


def corrupt(path: Path, text: str) -> FairlaneError:
    """A damaged file is never overwritten; the last good backup is named."""
    return FairlaneError(f"{path} is damaged: {text}", _way_back(path), "corrupt")


def _way_back(path: Path) -> str:
    """How to go on: the damaged file is moved, not removed, so that it can be examined later."""
    old = f"{path} and {path.name}-wal" if has_log(path) else f"{path}"
    copies = backups(path)
    good = next((file for file in reversed(copies) if is_whole(file)), None)
    if good:
        way = f"`fairlane down`, move {old} away, copy the backup to {path}."
        return f"The last good backup is {good}. To go on from there: {way}"
    count = len(copies)
    none = f"All backups of it are damaged too ({count})" if count else "There is no backup of it"
    return f"{none}. To start with an empty store: `fairlane down`, move {old} away."


def refuse_emptied(path: Path) -> None:
    """An empty file is a new store, unless there is a log or a backup of what was in it."""
    logged = has_log(path)  # asked first: a new file has its first page before its log
    if is_empty(path) and (logged or backups(path)):
        raise corrupt(path, "it is empty")


def backups(path: Path) -> list[Path]:
    """Whole copies of a store, oldest first; one that is being written has another name."""
    copies = (path.parent / "backups").glob(f"{path.stem}-*.db")
    return sorted(copies, key=lambda file: file.stat().st_mtime_ns)


def _read_only(path: Path, why: str) -> FairlaneError:
    hint = "Check who owns the folder, its permissions, and how its disk is mounted."
    return Refused(f"{path} cannot be written: {why}", hint, "read_only")


# Pages that are missing or damaged

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


@contextmanager
def reading_only(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as it lies there, by a connection that changes nothing."""
    from fairlane.store.sqlite.store import explained

    refuse_emptied(path)
    with explained(path):
        connection = read_only(path)
        try:
            yield connection
        finally:
            connection.close()


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
        # a read-only folder: every process checks
        with suppress(OSError), open(_mark(path), "w", encoding="ascii", opener=opener) as mark:
            mark.write(str(stat.st_ino))


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


# Rows that do not agree

_CHECKS = {
    "lanes whose count is not the number of their tasks": """
        SELECT count(*) FROM lanes l WHERE ready <>
            (SELECT count(*) FROM tasks t WHERE t.lane = l.id)""",
    "tallies that do not count their tasks": """
        SELECT count(*) FROM (
            SELECT status, wait, project, kind, count(*) AS n FROM tasks GROUP BY 1, 2, 3, 4
            EXCEPT SELECT status, wait, project, kind, count FROM tallies)""",
    "tasks in flight without exactly one open attempt": """
        SELECT count(*) FROM tasks t WHERE (status IN ('leased', 'running')) <>
            (EXISTS (SELECT 1 FROM attempts a WHERE a.task = t.id AND a.ended_at IS NULL))""",
    "attempts with a number above their task's": """
        SELECT count(*) FROM attempts a JOIN tasks t ON t.id = a.task
        WHERE a.number > t.attempts""",
    "fences that were not given out": """
        SELECT count(*) FROM attempts
        WHERE fence >= (SELECT ifnull(max(next), 1) FROM numbers WHERE name = 'fence')""",
}


def problems(connection: sqlite3.Connection) -> list[str]:
    """Everything in a file that is whole and yet wrong, in words."""
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    texts = [f"{row[0]} row {row[1]} names a {row[2]} that is not there" for row in broken]
    for what, statement in _CHECKS.items():
        count = connection.execute(statement).fetchone()[0]
        if count:
            texts.append(f"{count} {what}")
    return texts
