"""Write a file atomically: readers see the old content or the new one, never a part.

The new content goes into a file beside it that then takes its name. What is written follows from
what was read; if somebody else has changed the file meanwhile, it follows from that.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.clock import poll
from fairlane.model.errors import Refused, TryLater

#: How often somebody else's change is followed before it is left for later.
TRIES = 20
ANYBODY_WRITES = 0o222
#: No file that is written to is larger.
BYTES_MAX = 100_000_000
#: How long a lock of the folder is waited for, and how often it is looked at.
LOCK_SECONDS, LOOK_SECONDS = 10.0, 0.02
#: Name of the temporary file: hidden, and always the same, so that leftovers are found.
_BESIDE = ".{name}.fairlane"
#: How many of the files that were written are known again.
KNOWN_MAX = 10_000
_known: dict[Path, tuple[int, int, int]] = {}


def change(path: Path, turn: Callable[[bytes], bytes], within: Path | None = None) -> bool:
    """Put what `turn` makes of a file in its place; whether anything changed.

    `within`: a link that leads out of this folder is refused.
    """
    target = Path(os.path.realpath(path))
    if within is not None and not target.is_relative_to(os.path.realpath(within)):
        hint = "Nothing was written; take the link away."
        raise Refused(f"{path} leads out of {within}", hint, code="leads_out")
    try:
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not poll(partial(_locked, folder), LOCK_SECONDS, LOOK_SECONDS):
                hint = "The next sync makes up for it."
                raise TryLater(f"{target.parent} is locked by another program", hint, code="busy")
            return _change(target, turn, folder)
        finally:
            os.close(folder)
    except FileNotFoundError as error:
        raise Refused(f"{path} has gone away", "The next sync looks for it again.") from error
    except OSError as error:
        hint = "Nothing was changed; check the folder's permissions and free space."
        raise Refused(f"{path}: cannot be written: {error.strerror}", hint) from error


def _locked(folder: int) -> bool:
    """Whether it is ours: one writer a folder."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_ours(path: Path) -> bool:
    """Whether a file is as this process wrote it last, or is its temporary file."""
    if path.name.startswith(".") and path.name.endswith(_BESIDE.format(name="")[1:]):
        return True
    try:
        return path in _known and _known[path] == _mark(path)
    except OSError:
        return False


def _mark(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _change(target: Path, turn: Callable[[bytes], bytes], folder: int) -> bool:
    beside = target.with_name(_BESIDE.format(name=target.name))
    for _ in range(TRIES):
        before = read_file(target, BYTES_MAX)
        after = turn(before)
        if after == before:
            return False
        was = target.stat()
        if (
            not was.st_mode & ANYBODY_WRITES
        ):  # its owner made it read-only, though the folder is writable
            hint = f"It is told again later: chmod u+w {target.name}."
            raise Refused(f"{target} is read-only", hint, "read_only")
        try:
            _write(beside, after, was)
            if read_file(target, BYTES_MAX) == before:
                _know(target, _mark(beside))
                beside.replace(target)
                os.fsync(folder)
                return True
        finally:
            beside.unlink(missing_ok=True)
    raise Refused(f"{target} changes all the time", "It is written when it is left alone.")


def _know(path: Path, mark: tuple[int, int, int]) -> None:
    _known.pop(path, None)
    _known[path] = mark
    if len(_known) > KNOWN_MAX:
        del _known[next(iter(_known))]


def _write(path: Path, content: bytes, like: os.stat_result) -> None:
    path.unlink(missing_ok=True)  # left by a writer that was killed
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            with suppress(PermissionError):  # only root gives files away
                os.fchown(handle, like.st_uid, like.st_gid)
        os.fchmod(handle, like.st_mode & 0o7777)
        os.fsync(handle)
