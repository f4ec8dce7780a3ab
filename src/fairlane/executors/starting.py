"""Starting: a runner that waits for its orders, forked from a warm process or started anew."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, NamedTuple

from fairlane.executors import runner

#: The end of every runner's command line.
CALL = "import runner; sys.exit(runner.main())"
_FOLDER = str(Path(runner.__file__).parents[1])
#: The command line of a runner: imported, not run as a script, so that it is compiled once.
RUN = (sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({_FOLDER!r}); {CALL}")
#: How long a warm process may take to fork; it may have to start first.
ANSWER_SECONDS = 10.0
#: After so many warm processes in a row that did not fork, no other is started.
_FAILURES_MAX = 3

#: A process: its number, and what tells it from a later one of the same number.
Process = tuple[int, str]


class Waiting(NamedTuple):
    """A runner that waits for its orders; without any it ends."""

    process: Process
    orders: IO[bytes]


class WarmProcess:
    """A runner that forks others, as they would be if they were started anew.

    It ends with this process: nobody can ask it any more. Where there is none, or it does not
    answer, runners are started anew.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._heritage: object = None
        self._failures = 0

    def start(self) -> None:
        """Start it, where none is there. While a thread uses it this does not wait."""
        if self._turn.acquire(blocking=False):
            try:
                self._start()
            finally:
                self._turn.release()

    def fork(self) -> Waiting | None:
        """A new runner; None: start one anew."""
        with self._turn:
            if self._heritage != _heritage():  # its runners would not be like fresh ones
                self._end()
            if self._socket is None:
                return None
            given, orders = os.pipe()
            try:
                pid = _asked(self._socket, given)
                self._failures = 0
            except OSError:  # it was killed, or hangs
                os.close(orders)
                self._failures += 1
                self._end()
                return None
            finally:
                os.close(given)
        return _waiting(pid, os.fdopen(orders, "wb"))

    def close(self) -> None:
        """End it; its runners go on."""
        with self._turn:
            self._end()

    def _start(self) -> None:
        is_there = self._process is not None and self._process.poll() is None
        if is_there or self._failures >= _FAILURES_MAX:
            return
        self._end()
        self._heritage = _heritage()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._socket.settimeout(ANSWER_SECONDS)
            self._process = _new_process(theirs.fileno())

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.kill()  # it may hang
            self._process.wait()
        self._socket = self._process = None


def fresh() -> Waiting:
    """A runner in a new Python."""
    process = _new_process(subprocess.PIPE)
    assert process.stdin is not None
    process.returncode = 0  # `reap` reaps it, not this object
    _children.add(process.pid)
    return _waiting(process.pid, process.stdin)


def reap() -> None:
    """Reap ended runners that are children of this process; leave other children alone."""
    for pid in tuple(_children):
        with contextlib.suppress(ChildProcessError):
            if not os.waitpid(pid, os.WNOHANG)[0]:
                continue
        _children.discard(pid)


#: Runners that this process started anew, until they are reaped.
_children: set[int] = set()


def _waiting(pid: int, orders: IO[bytes]) -> Waiting:
    try:
        return Waiting((pid, runner.process_started(pid) or ""), orders)
    except OSError:
        orders.close()  # it gets none, and ends
        raise


def _asked(warm: socket.socket, given: int) -> int:
    """The number of a new runner that reads its orders from here."""
    socket.send_fds(warm, [b"x"], [given])
    pid = int(warm.recv(20) or b"-1")
    if pid < 0:
        raise ChildProcessError("the warm process cannot fork")
    return pid


def _environment() -> dict[str, str]:
    """The mark of an attempt that starts another one would have that swept away with itself."""
    return {name: value for name, value in os.environ.items() if name != runner.MARK}


def _heritage() -> object:
    """What a runner inherits from this process, and this process may change."""
    return _environment(), resource.getrlimit(resource.RLIMIT_NOFILE)


def _new_process(stdin: int) -> subprocess.Popen[bytes]:
    # Delay a stop until the runner handles it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return subprocess.Popen(
            RUN, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/", start_new_session=True, close_fds=True, env=_environment(),
        )  # fmt: skip
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
