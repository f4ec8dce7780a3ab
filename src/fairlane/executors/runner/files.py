"""Orders; files of the run folder, written whole, never through a link; processes of a run."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False  # `typing` itself would take longer to import than all the rest
if TYPE_CHECKING:
    from typing import TypedDict

    class After(TypedDict):
        """A command that takes in how an attempt ended."""

        argv: list[str]
        unless: str

    class Calls(TypedDict):
        """The attempt's socket, and the command that answers a call."""

        socket: str
        argv: list[str]

    class Sandbox(TypedDict):
        """What holds an agent; `executors/base.py` says what it means."""

        kind: str
        words: list[str]
        read: list[str]
        write: list[str]
        temporary: str
        memory: int | None
        processes: int | None
        files: int | None
        cpu: int | None

    class Orders(TypedDict):
        """What a runner reads from its pipe; `executors/base.py` says what it means."""

        folder: str
        argv: list[str]
        cwd: str
        env: dict[str, str]
        stdin: str | None
        stop: tuple[float, float]
        grace: float
        final: list[tuple[str, list[str]]]
        timeout: float | None
        silence: float | None
        max_bytes: int
        tail_bytes: int
        joined: bool
        line_max: int
        mask: list[str]
        sandbox: Sandbox | None
        marker: str  # of all processes of the run
        after: After | None
        calls: Calls | None
        seal: str
        echo: bool  # to the terminal too


#: What every process of a run has in its environment.
MARK = "FAIRLANE_RUN"
#: How every file of the run folder is opened: the agent could have put a link or a pipe there.
SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: In a run folder until the exit record is there: how the agent ended.
ENDED = "ended.json"
#: How long a file is tried when the disk is full.
WRITE_SECONDS = 60.0
#: Most environments are shorter.
ENVIRONMENT_CHUNK = 1 << 14
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write(folder: str, name: str, document: dict[str, object], now: bool = False) -> None:
    """Write a file atomically and durably; without room retry for a while.

    `now`: what is of no use when the machine has stopped is not durable, and fails without room.
    """
    path = os.path.join(folder, name)
    give_up = time.monotonic() + (0.0 if now else WRITE_SECONDS)
    while True:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + ".new")
            new = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE, 0o600)
            with os.fdopen(new, "w", encoding="utf-8") as file:
                file.write(json.dumps(document))
                file.flush()
                if not now:
                    os.fsync(file.fileno())
            os.replace(path + ".new", path)
            return
        except OSError as error:
            if error.errno not in NO_ROOM or time.monotonic() >= give_up:
                raise
            if make_room(folder):
                document["cut"] = True
            else:
                time.sleep(0.5)


def read_orders() -> Orders:
    """From standard input, or from a named pipe that is gone after it."""
    orders: Orders
    if len(sys.argv) < 2:
        orders = json.load(sys.stdin)
    else:
        with open(sys.argv[1], encoding="utf-8") as pipe:
            os.unlink(sys.argv[1])
            orders = json.load(pipe)
    return orders


def exit_status(code: int) -> dict[str, object]:
    """What `Popen` says of an ended process, as records have it."""
    return {"exit_code": code if code >= 0 else None, "signal": -code if code < 0 else None}


def with_end(ended: dict[str, object], stopped: str, seal: str) -> dict[str, object]:
    """A record with why it was stopped; that of a success has the seal, which nobody else knows."""
    success = ended.get("exit_code") == 0 and not stopped
    return ended | {"stopped": stopped} | ({"seal": seal} if success and seal else {})


def note_end(folder: str, code: int, stopped: str, seal: str) -> None:
    """Say at once how the agent ended: this runner may be killed before its exit record is there.

    It is for the death of this process, not of the machine.
    """
    with contextlib.suppress(OSError):
        write(folder, ENDED, with_end(exit_status(code), stopped, seal), now=True)


def make_room(folder: str) -> bool:
    """Cut the longer log by half: the exit record matters more."""
    sizes = {}
    for name in ("stdout.log", "stderr.log"):
        with contextlib.suppress(OSError):
            file = os.open(os.path.join(folder, name), os.O_WRONLY | SAFE)
            sizes[file] = os.fstat(file).st_size
    longest = max(sizes, key=lambda file: sizes[file], default=-1)
    made = bool(sizes.get(longest))
    if made:
        os.truncate(longest, sizes[longest] // 2)
    for file in sizes:
        os.close(file)
    return made


def marked(marker: str) -> list[int]:
    """Other processes that carry this run's mark in their environment."""
    pids = []
    mark = os.fsencode(f"{MARK}={marker}")
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in _environment(name).split(b"\0"):
                    pids.append(int(name))
    return pids


def _environment(pid: str) -> bytes:
    """The environment of a process; of all processes in turn, so without a file object each."""
    file, parts = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC), []
    try:
        while part := os.read(file, ENVIRONMENT_CHUNK):
            parts.append(part)
    finally:
        os.close(file)
    return b"".join(parts)


def end_of_file(path: str, size: int = 4096) -> str:
    """The last part of a file of the run folder; empty where it cannot be read."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | SAFE), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size).decode("utf-8", "replace")
    except OSError:
        return ""


def process_started(pid: int) -> str | None:
    """What tells this process from a later one of the same number; None: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in b"ZX" else fields[19].decode()


def ignore_nothing() -> None:
    """An agent inherits what is ignored here, but no handler; `nohup` must not keep it from a stop.

    `Popen` itself restores the two that Python ignores.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


def own_process() -> dict[str, object]:
    """How this runner is found again."""
    return {"pid": os.getpid(), "pid_started": process_started(os.getpid())}


def failure(error: OSError, what: str) -> dict[str, object]:
    """Why nothing runs; the number tells whether something was missing here."""
    text = f"{os.fsdecode(error.filename or what)}: {error.strerror}"
    return {"launch_error": text, "errno": error.errno or 0}


def call_for(argv: list[str], unless: str) -> None:
    """Without anybody who watches, a command takes in how it ended."""
    with contextlib.suppress(OSError), open(unless, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # refused: somebody watches
        null = subprocess.DEVNULL
        # Not in the run folder, from which Python would import what the agent has put there.
        subprocess.Popen(
            argv, stdin=null, stdout=null, stderr=null, start_new_session=True, cwd="/"
        )
