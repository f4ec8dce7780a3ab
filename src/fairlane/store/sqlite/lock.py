"""The write lock of a store: which process holds it, as far as the kernel tells (Linux)."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from fairlane.model.errors import TryLater
from fairlane.model.record import NamedTuple

#: The byte of the shared memory file that a writer of a write-ahead log locks.
_WRITE_LOCK = 120
_VERB = r"[a-z]+"


class Holder(NamedTuple):
    """A process that holds the write lock."""

    pid: int
    command: str
    stopped: bool  # by a signal: it goes on when somebody continues it

    @property
    def text(self) -> str:
        """For people."""
        return f"`{self.command}` (pid {self.pid})"


def busy(path: Path, text: str) -> TryLater:
    """Why a store cannot be written now: the error names who holds the lock, and what helps."""
    holder = holder_of(path)
    if holder is None:
        return TryLater(f"{path} is busy: {text}", "Try again in a moment.", "busy")
    if holder.stopped:
        message = f"{path} is busy: {holder.text} is stopped and holds the write lock"
        return TryLater(message, way_out(holder), "busy")
    message = f"{path} is busy: {holder.text} holds the write lock"
    return TryLater(message, "Try again in a moment.", "busy")


def way_out(holder: Holder) -> str:
    """What helps against a holder that is stopped."""
    go_on, end = f"kill -CONT {holder.pid}", f"kill -KILL {holder.pid}"
    return f"Let it continue: {go_on}. Or end it: {end}; what it has not committed is rolled back."


def holder_of(path: Path) -> Holder | None:
    """Who holds the write lock of the store in this file; None: nobody, or nobody can tell."""
    try:
        shared = Path(f"{path}-shm").stat()
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None
    device = shared.st_dev
    place = f"{os.major(device):02x}:{os.minor(device):02x}:{shared.st_ino}"
    for line in locks.splitlines():
        words = line.split()
        if words[-3:-2] == [place] and words[1] == "POSIX" and words[3] == "WRITE":
            pid, first, last = words[4], words[6], words[7]
            if pid.isdecimal() and int(first) <= _WRITE_LOCK and _reaches(last):
                return _holder(int(pid))
    return None


def _reaches(last: str) -> bool:
    return last == "EOF" or int(last) >= _WRITE_LOCK


def _holder(pid: int) -> Holder | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # it has just ended, or belongs to another machine
        return None
    return Holder(pid, _command(words), is_stopped(pid))


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped this process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("T", "t")


def _command(words: list[str]) -> str:
    """The program, and of our own the command; arguments may be private."""
    names = [Path(word).name for word in words]
    if "fairlane" not in names:
        return names[0]
    ours = words[names.index("fairlane") + 1 :]
    verb = next((word for word in ours if re.fullmatch(_VERB, word)), "")
    return f"fairlane {verb}".strip()


def writers_without_log(path: Path) -> list[int]:
    """Processes whose log (`-wal`) was removed while they have it open: nobody else sees it."""
    gone = f"{path.resolve()}-wal (deleted)"
    processes = (folder for folder in Path("/proc").iterdir() if folder.name.isdecimal())
    return [int(folder.name) for folder in processes if _has_open(folder, gone)]


def _has_open(process: Path, target: str) -> bool:
    with suppress(OSError):  # it has ended, or is not ours
        return any(str(file.readlink()) == target for file in (process / "fd").iterdir())
    return False
