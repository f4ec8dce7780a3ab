"""The kernel tells when files are written (inotify), so that nobody has to poll them."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

_IN_MODIFY = 0x2
_IN_OVERFLOW, _IN_ISDIR, _IN_ONLYDIR = 0x4000, 0x40000000, 0x01000000
#: Written, moved away, moved here, made, removed.
_ANY_CHANGE = _IN_MODIFY | 0x40 | 0x80 | 0x100 | 0x200
_EVENT = struct.Struct("iIII")
#: Most folders of one tree that are watched.
FOLDERS_MAX = 4096
#: Folders in which nobody keeps a list of work.
_NO_WORK = frozenset({".git", ".hg", ".jj", ".venv", "node_modules", "__pycache__"})

#: Whether the kernel is asked at all; in virtual time nothing may depend on what it has left.
ASKED: ContextVar[bool] = ContextVar("asked", default=True)


class _Inotify:
    """One descriptor of the kernel; -1: it cannot tell."""

    def __init__(self) -> None:
        self._descriptor = -1
        if not ASKED.get():
            return
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._descriptor = int(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        except (OSError, AttributeError):
            pass  # another kernel

    def fileno(self) -> int:
        """What a wait reads."""
        return self._descriptor

    def __del__(self) -> None:
        self.close()  # the kernel has few of them, and whoever crashes closes nothing

    def close(self) -> None:
        """Tell of nothing more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _ask(self, path: Path, mask: int) -> int:
        """The number of a watch; negative: the kernel does not watch this."""
        if self._descriptor < 0:
            return -1
        return int(self._libc.inotify_add_watch(self._descriptor, bytes(path), mask))


class WriteWatch(_Inotify):
    """Readable after every write to one file."""

    @classmethod
    def of(cls, file: Path) -> WriteWatch | None:
        """A watch of this file; None: the kernel cannot tell."""
        watch = cls()
        if watch._ask(file, _IN_MODIFY) >= 0:
            return watch
        watch.close()
        return None

    def drain(self) -> None:
        """Forget the writes so far."""
        with suppress(BlockingIOError):
            os.read(self._descriptor, 1 << 16)


class TreeWatch(_Inotify):
    """Files and whole folders behind one descriptor; `changed` says in which of them."""

    def __init__(self) -> None:
        super().__init__()
        #: Watch -> what it tells of: a name in its folder ("": any), and the path that was asked.
        self._tells: dict[int, set[tuple[str, Path]]] = {}
        self._folders: dict[int, Path] = {}

    def add(self, path: Path) -> bool:
        """Tell of changes of this file, or of anything in this folder; whether that can be had."""
        real = Path(os.path.realpath(path))  # also of a link to itself
        if not self._watch(real.parent, real.name, path):
            return False  # there is not even a folder for it
        for number, folder in enumerate(_folders(real)):
            if number >= FOLDERS_MAX or not self._watch(folder, "", path):
                return False
        return True

    def changed(self, ignored: Callable[[Path], bool] = lambda file: False) -> set[Path]:
        """The paths in which something has changed; new folders are watched from now on."""
        changed, grown = set(), set()
        for watch, mask, name in self._events():
            if mask & _IN_OVERFLOW:  # too much has happened to be told one by one
                changed |= {path for tells in self._tells.values() for _, path in tells}
                grown |= changed
            if watch in self._folders and ignored(self._folders[watch] / name):
                continue
            for wanted, path in self._tells.get(watch, ()):
                if wanted in ("", name):
                    changed.add(path)
                    if mask & _IN_ISDIR:
                        grown.add(path)
        for path in grown:
            self.add(path)
        return changed

    def _watch(self, folder: Path, name: str, path: Path) -> bool:
        watch = self._ask(folder, _ANY_CHANGE | _IN_ONLYDIR)
        if watch >= 0:
            self._tells.setdefault(watch, set()).add((name, path))
            self._folders[watch] = folder
        return watch >= 0

    def _events(self) -> Iterator[tuple[int, int, str]]:
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, size = _EVENT.unpack_from(data, at)
                at += _EVENT.size + size
                yield watch, mask, os.fsdecode(data[at - size : at].rstrip(b"\0"))


def _folders(root: Path) -> Iterator[Path]:
    """A folder with all that may hold work below it; nothing for a file."""
    for folder, below, _ in os.walk(root):
        below[:] = [name for name in below if name not in _NO_WORK]
        yield Path(folder)
