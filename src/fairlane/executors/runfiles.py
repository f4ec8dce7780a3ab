"""Run folders, which agents can change: read regular files only, no links; follow the output."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from fairlane.careful_files import make_folder
from fairlane.executors.base import Executor
from fairlane.model.amounts import LINE_MAX

#: Most bytes of `exit.json` and `runner.json`.
RECORD_MAX = 1 << 20

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: This process has too many files open, or no memory.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Damaged(OSError):
    """Something in a run folder is not what Fairlane has written; the message names it."""


def damage_of(error: OSError) -> str:
    """What an error says of a run folder; one that says nothing of it is raised again."""
    if error.errno in _PASSING:
        raise error
    return str(error)


def opened(path: Path) -> BinaryIO:
    """A regular file of a run folder, for reading."""
    return os.fdopen(_open(path, os.O_RDONLY), "rb")


def log_of(run: Path) -> Path:
    """The file with what a command printed; with its errors, where they stand among its output."""
    return run / "stdout.log"


def size(path: Path) -> int:
    """How long a file is; 0 where it cannot be read."""
    try:
        with opened(path) as file:
            return os.fstat(file.fileno()).st_size
    except OSError:
        return 0


def read_part(path: Path, offset: int, limit: int) -> bytes:
    """At most `limit` bytes of a file from a byte on; empty where there is no such file."""
    try:
        with opened(path) as file:
            file.seek(offset)
            return file.read(limit)
    except FileNotFoundError:
        return b""


def tail(path: Path, limit: int) -> bytes:
    """The end of a file; empty where it cannot be read."""
    try:
        return read_part(path, max(0, size(path) - limit), limit)
    except OSError:
        return b""


def read_record(path: Path) -> dict[str, object] | None:
    """A small JSON object; None: no such file, or the machine stopped before it was written."""
    try:
        with opened(path) as file:
            data = file.read(RECORD_MAX + 1)
    except FileNotFoundError:
        return None
    if len(data) > RECORD_MAX:
        raise Damaged(f"{path.name} is too large")
    try:
        record = json.loads(data) if data else None
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path.name} is not JSON") from error
    if data and not isinstance(record, dict):
        raise Damaged(f"{path.name} is not JSON of a record")
    return record


def append(path: Path, text: str, most: int | None = None) -> bool:
    """More text at the end of a file, made if it is missing; False: that is more than `most`."""
    data = text.encode("utf-8", "replace")
    with os.fdopen(_open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb") as file:
        if most is not None and os.fstat(file.fileno()).st_size + len(data) > most:
            return False
        file.write(data)
    return True


def put(path: Path, text: str) -> None:
    """A new file in the place of whatever is there, whole or not at all."""
    beside = f"{path.name}.new"
    with _inside(path.parent) as folder:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        new = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600, dir_fd=folder)
        try:
            with os.fdopen(new, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(beside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with suppress(OSError):
                os.unlink(beside, dir_fd=folder)
            raise


def make_run(folder: Path) -> Path:
    """A run folder and that of its task, made where they are missing, never through a link."""
    make_folder(folder.parents[1])
    within = os.open(folder.parents[1], _FOLDER)
    try:
        _make(folder.parent, within)
        with _below(within, folder, folder.parts[-2:-1]) as task:
            _make(folder, task)
    finally:
        os.close(within)
    with _inside(folder):
        return folder


def make_anew(folder: Path) -> Path:
    """An empty run folder; whatever an agent has left in its place is removed."""
    with suppress(FileNotFoundError):
        within = os.open(folder.parents[1], _FOLDER)
        try:
            with _below(within, folder, folder.parts[-2:-1]) as task:
                _remove(folder, task)
        finally:
            os.close(within)
    return make_run(folder)


def _remove(folder: Path, task: int) -> None:
    """Remove whatever has this name in the folder of a task; a link is not followed."""
    try:
        os.unlink(folder.name, dir_fd=task)
    except (IsADirectoryError, PermissionError):  # systems refuse a folder in either way
        try:
            shutil.rmtree(folder.name, dir_fd=task)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Damaged(f"{folder} cannot be removed: {damage_of(error)}") from error


def _make(folder: Path, within: int) -> None:
    """Make a folder in one that is open; an error names it whole, so that its disk is known."""
    try:
        os.mkdir(folder.name, 0o700, dir_fd=within)
    except FileExistsError:
        return
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def _open(path: Path, flags: int) -> int:
    try:
        with _inside(path.parent) as folder:
            file = os.open(path.name, flags | _SAFE, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Damaged(f"{path.name} is a symbolic link") from error
        if error.errno in (errno.ENXIO, errno.EISDIR):  # nobody reads this pipe; a folder
            raise Damaged(f"{path.name} is no regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Damaged(f"{path.name} is no regular file")
    return file


@contextmanager
def _inside(folder: Path) -> Iterator[int]:
    """A descriptor of a run folder; neither it nor the folder of its task may be a link."""
    within = os.open(folder.parents[1], _FOLDER)
    try:
        with _below(within, folder, folder.parts[-2:]) as descriptor:
            yield descriptor
    finally:
        os.close(within)


@contextmanager
def _below(within: int, folder: Path, names: tuple[str, ...]) -> Iterator[int]:
    """A descriptor of what is below an open folder, by these names; none of them is a link."""
    descriptor = os.dup(within)
    try:
        for name in names:
            try:
                below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            except NotADirectoryError as error:
                raise Damaged(f"{folder} is a symbolic link, or no folder") from error
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


#: How much is read at once.
CHUNK = 1 << 20


def end_of(executor: Executor, run: Path, stream: str, limit: int) -> bytes:
    """The last bytes of a stream; empty where it cannot be read."""
    size = executor.output_size(run, stream)
    try:
        return executor.output(run, stream, max(0, size - limit), limit) if size else b""
    except OSError:
        return b""


class Lines:
    """The lines of a stream as it grows, in bounded memory; one longer than `most` is skipped."""

    def __init__(
        self, executor: Executor, run: Path, stream: str = "stdout", most: int = LINE_MAX
    ) -> None:
        self._executor, self._run, self._stream, self._most = executor, run, stream, most
        self.at = 0  # how far the stream was read
        self._part = bytearray()  # of a line whose end has not come
        self._skips = False  # whether that line is too long

    def unread(self) -> int:
        """How many bytes there are more."""
        return max(0, self._executor.output_size(self._run, self._stream) - self.at)

    def more(self, room: int) -> list[str]:
        """The whole lines of the next bytes, of at most `room`."""
        data = self._executor.output(self._run, self._stream, self.at, room)
        self.at += len(data)
        whole, end, rest = data.rpartition(b"\n")
        if not end:
            self._keep(data)
            return []
        lines = (self._part + whole).split(b"\n")[self._skips :]
        self._part, self._skips = bytearray(), False
        self._keep(rest)
        return [self._text(line) for line in lines if len(line) <= self._most]

    def rest(self, most: int = sys.maxsize) -> Iterator[list[str]]:
        """Everything to the end, part by part; nothing follows, so the last line is whole.

        Of more than `most` bytes the last ones alone: an agent can make its log longer.
        """
        skipped = self.unread() - most
        if skipped > 0:
            self.at += skipped
            self._part, self._skips = bytearray(), True
        end, before = self.at + most, -1
        while before < self.at < end:
            before = self.at
            yield self.more(min(CHUNK, end - before))
        if self._part:
            yield [self._text(self._part)]
            self._part, self._skips = bytearray(), True

    def _keep(self, data: bytes) -> None:
        if not self._skips:
            self._part += data
        if len(self._part) > self._most:
            self._part, self._skips = bytearray(), True

    def _text(self, line: bytes | bytearray) -> str:
        return line.decode("utf-8", "replace")
