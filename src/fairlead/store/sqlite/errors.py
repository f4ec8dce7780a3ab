"""What SQLite says, as errors that tell what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlead.model.errors import FairleadError, Refused, TryLater

_CORRUPT = ("malformed", "not a database", "file is encrypted", "disk image")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Errors of the database become errors of the product."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise Refused(f"the store refuses this: {error}", "Nothing was changed.") from error
    except sqlite3.DatabaseError as error:
        raise explain(error, path) from error


def explain(error: sqlite3.DatabaseError, path: Path) -> FairleadError:
    """The error that a person can act on."""
    text = str(error)
    if "locked" in text or "busy" in text:
        return TryLater(f"{path} is busy: {text}", "Try again in a moment.", "busy")
    if "full" in text:
        return TryLater(f"no room left to write {path}", "Free some disk space.", "disk_full")
    if "readonly" in text:
        hint = "Check who owns the folder and its permissions."
        return Refused(f"{path} cannot be written: {text}", hint, "read_only")
    if "unable to open" in text:
        return TryLater(f"{path} cannot be opened", "Check that the folder exists.", "unreachable")
    if any(word in text for word in _CORRUPT):
        return corrupt(path, text)
    return FairleadError(f"{path}: {text}", "`fairlead doctor` looks closer.", "store")


def corrupt(path: Path, text: str) -> FairleadError:
    """A damaged file is never overwritten; the last good backup is named."""
    backups = sorted((path.parent / "backups").glob("*.db"), key=lambda file: file.stat().st_mtime)
    hint = "There is no backup of it."
    if backups:
        hint = f"The last good backup is {backups[-1]}; copy it to {path} to go on from there."
    return FairleadError(f"{path} is damaged: {text}", hint, "corrupt")
