"""Files made and read with care: ours only their owner can read, whatever the umask is.

What people and programs give as input is read in bounds, and from nothing that can block. Those
functions raise `OSError`, whose `strerror` says what is wrong, as for any unreadable file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from fairlane.model.errors import Invalid, Refused

_OTHERS = 0o077
#: A folder with one of these is a home folder; another one with files keeps its mode.
_MARKS = ("fairlane.toml", "policy.toml", "fairlane.db", "token")


def make_folder(folder: Path) -> Path:
    """This folder and the missing ones above it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def make_own(folder: Path) -> bool:
    """Make a folder in one of everybody; whether it is one of ours that nobody else may enter.

    Others can put a link of its name into /tmp, which would lead elsewhere.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    return is_own(folder)


def is_own(folder: Path) -> bool:
    """Whether this is a folder of ours, and no link."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
    return is_private and found.st_uid == os.getuid()


def opener(path: str, flags: int) -> int:
    """For `open`: a new file is readable by its owner alone."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def make_home(folder: Path) -> str:
    """A home folder that only its owner can read; what was changed about it, or ""."""
    try:
        status = make_folder(folder).stat()
    except OSError as error:
        hint = "Give another folder with --home or FAIRLANE_HOME."
        raise Invalid(f"{folder}: no home folder: {error.strerror}", hint) from error
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _OTHERS:
        return ""
    if status.st_uid != os.geteuid() or mode & stat.S_ISVTX:
        hint = "Give a folder of its own with --home or FAIRLANE_HOME."
        message = f"{folder} is no home folder, and others can read it (mode {mode:03o})"
        raise Refused(message, hint, "not_private")
    if _is_another(folder):
        return f"others can read {folder} (mode {mode:03o}): chmod 700 {folder}"
    try:
        folder.chmod(mode & ~_OTHERS)
    except OSError as error:
        return f"others can read {folder} (mode {mode:03o}): {error.strerror}"
    return f"{folder} could be read by others (mode {mode:03o}); now only you can"


def _is_another(folder: Path) -> bool:
    """Whether it holds other things: making those private could lock somebody out."""
    return any(folder.iterdir()) and not any((folder / mark).exists() for mark in _MARKS)


def stage(path: Path, text: str, new_mode: int) -> Path:
    """A text next to the file whose place it will take, with its mode; links are followed."""
    import tempfile

    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else new_mode
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    staged = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        staged.chmod(mode)
    except OSError:
        staged.unlink(missing_ok=True)
        raise
    return staged


def unwritable(path: Path, error: OSError) -> Invalid:
    """A file that cannot be replaced."""
    hint = "Nothing was changed; check the folder's permissions and free space."
    return Invalid(f"{path}: cannot be written: {error.strerror}", hint)


# Input

_CHUNK = 1 << 20
#: Descriptors that are open already, such as `<(command)` of a shell: the caller waits for those.
_OPEN = ("/dev/fd/", "/dev/stdin")
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_file(path: str | Path, most: int) -> bytes:
    """The bytes of a regular file of at most this size."""
    name = os.fspath(path)
    if name.startswith(_OPEN):
        with open(name, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor, not a path
            return read_stream(file, most)
    _refuse(os.stat(name), name, most)  # noqa: PTH116 - opening a device can have effects
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        _refuse(os.fstat(descriptor), name, most)
        return read_stream(file, most)


def read_stream(stream: BinaryIO, most: int) -> bytes:
    """The bytes of a stream until its end, at most this many."""
    parts: list[bytes] = []
    size = 0
    while chunk := stream.read(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            raise _too_large(most)
    return b"".join(parts)


def _refuse(status: os.stat_result, name: str, most: int) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'no file')}, not a file", name)
    if status.st_size > most:
        raise _too_large(most)


def _too_large(most: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {most:,} bytes")
