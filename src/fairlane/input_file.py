"""Read what people and programs give as input: bounded, and from nothing that can block.

Both functions raise `OSError`, whose `strerror` says what is wrong, as for any unreadable file.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

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
