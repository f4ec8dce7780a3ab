"""What SQLite says, as errors that tell what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlane.model.errors import NO_ROOM, FairlaneError, Refused, TryLater
from fairlane.store.sqlite.whole import has_log, is_empty, is_whole

_CORRUPT = (
    "malformed", "not a database", "file is encrypted", "disk image", "decode to UTF-8",
    "unsupported file format",
)  # fmt: skip
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_FREE_SOME = "Free some disk space."


class Damaged(sqlite3.DatabaseError):
    """A row that nobody of ours has written, or a page that is not there."""


@contextmanager
def explained(path: Path, damaged: Callable[[], None] | None = None) -> Iterator[None]:
    """Errors of the database become errors of the product; `damaged` is called if it is that."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise Refused(f"the store refuses this: {error}", "Nothing was changed.") from error
    except sqlite3.DatabaseError as error:
        if damaged is not None and _is_damage(error):
            damaged()
        raise explain(error, path) from error


@contextmanager
def reachable(path: Path) -> Iterator[None]:
    """Errors of the folder become errors of the product."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in NO_ROOM:
            raise TryLater(f"no room left to write {path}", _FREE_SOME, "disk_full") from error
        if error.errno in _FORBIDDEN:
            raise _read_only(path, why) from error
        hint = "Check that its folder exists."
        raise TryLater(f"{path} cannot be opened: {why}", hint, "unreachable") from error


def explain(error: sqlite3.DatabaseError, path: Path) -> FairlaneError:
    """The error that a person can act on."""
    text = str(error)
    if _is_damage(error):
        return corrupt(path, text)
    if "locked" in text or "busy" in text:
        return TryLater(f"{path} is busy: {text}", "Try again in a moment.", "busy")
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


def _is_damage(error: sqlite3.DatabaseError) -> bool:
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
    found = (path.parent / "backups").glob(f"{path.stem}-*.db")
    return sorted(found, key=lambda file: file.stat().st_mtime_ns)


def _read_only(path: Path, why: str) -> FairlaneError:
    hint = "Check who owns the folder, its permissions, and how its disk is mounted."
    return Refused(f"{path} cannot be written: {why}", hint, "read_only")
