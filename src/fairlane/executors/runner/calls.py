"""The attempt's socket: its own operations, passed on to a Fairlane outside, one at a time.

A process of its own serves it from the first call on: most agents never call. It ends with the
runner, and what it starts is no part of the attempt. A caller names an operation and arguments;
home folder and lease are fixed in the command line that answers.
"""

from __future__ import annotations

import _socket  # enough to listen; `socket` itself takes six times as long to import
import contextlib
import json
import os
import selectors
import signal
import stat
import subprocess
import time

from .files import MARK
from .tree import runner_of

TYPE_CHECKING = False  # `typing` itself would take longer to import than all the rest
if TYPE_CHECKING:
    import socket

    from .files import Calls

#: Most bytes of a call, and of its answer.
REQUEST_MAX, ANSWER_MAX = 1 << 20, 16 << 20
#: Most calls of one attempt.
CALLS_MAX = 10_000
#: How long a caller may take to say what it wants or to take its answer, and how long that takes.
CALLER_SECONDS, CALL_SECONDS = 10.0, 120.0
#: Callers that wait for their turn.
WAITING_MAX = 16
#: The option of a socket that gives a descriptor of the process at its other end; the error of a
#: kernel that does not know it.
SO_PEERPIDFD, ENOPROTOOPT = 77, 92


class Refusal(Exception):
    """A call that is not passed on: exit code, error code, message, hint."""


class Listener:
    """The socket, and the process that serves it, made when the first call comes."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._folder = _folder(os.path.dirname(calls["socket"]))
        self._socket = _socket.socket(_socket.AF_UNIX)
        self._socket.bind(calls["socket"])
        os.chmod(calls["socket"], 0o600)
        self._socket.listen(WAITING_MAX)
        self._life = -1  # closes with this process
        self.server = 0

    def fileno(self) -> int:
        """What becomes ready at the first call."""
        return self._socket.fileno()

    def serve(self) -> None:
        """Let another process serve it from now on, until this one ends."""
        lives, self._life = os.pipe2(os.O_CLOEXEC)
        runner = os.getpid()
        self.server = os.fork()
        if self.server == 0:
            try:
                signal.set_wakeup_fd(-1)
                _close_all_but({lives, self._folder, self.fileno()})
                _serve(self._socket.detach(), lives, self._folder, self._calls, runner)
            finally:
                os._exit(0)
        for descriptor in (lives, self._folder, self._socket.detach()):
            os.close(descriptor)

    def close(self) -> None:
        """Nobody called: nobody else removes it."""
        if not self.server:
            _remove(self._folder, self._calls)


def _close_all_but(needed: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in needed:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _remove(folder: int, calls: Calls) -> None:
    with contextlib.suppress(OSError):
        os.unlink("socket", dir_fd=folder)
        os.rmdir(os.path.dirname(calls["socket"]))


def _folder(path: str) -> int:
    """The socket's own folder, empty; nobody else may enter it."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(folder)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700:
        os.close(folder)
        raise PermissionError(1, "somebody else has made it", path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink("socket", dir_fd=folder)
    return folder


def _serve(listening: int, lives: int, folder: int, calls: Calls, runner: int) -> None:
    import socket

    listener = socket.socket(fileno=listening)
    os.setsid()
    os.chdir("/")  # the run folder is the agent's
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    listener.setblocking(False)
    selector, served = selectors.DefaultSelector(), 0
    selector.register(listener, selectors.EVENT_READ)
    selector.register(lives, selectors.EVENT_READ)
    while all(key.fd != lives for key, _ in selector.select()):
        with contextlib.suppress(OSError):  # the caller is gone: nobody to tell
            connection, _ = listener.accept()
            with connection:
                served += 1
                _answer(connection, calls["argv"], served, runner)
    _remove(folder, calls)


def _answer(connection: socket.socket, argv: list[str], number: int, runner: int) -> None:
    try:
        try:
            is_of_another = _is_of_another(connection, runner)
        except OSError:  # it has ended, and its number may be somebody else's
            is_of_another = True
        if is_of_another:
            raise Refusal(1, "forbidden", "this is the socket of another attempt", "Use your own.")
        if number > CALLS_MAX:
            raise Refusal(1, "too_many", f"an attempt makes at most {CALLS_MAX} calls", "")
        answer = _passed_on(argv, _request(connection))
    except Refusal as refusal:
        code, name, message, hint = refusal.args
        error = {"code": name, "message": message, "hint": hint}
        document = {"schema": "fairlane/1", "error": error}
        answer = json.dumps({"exit_code": code, "document": document}).encode()
    connection.settimeout(CALLER_SECONDS)
    connection.sendall(answer + b"\n")


def _is_of_another(connection: socket.socket, runner: int) -> bool:
    """Whether the caller is in a sandbox that is not this attempt's.

    Landlock lets an agent connect to every socket, and marks it for ever: no new privileges. Who
    has no such mark can open the store itself.
    """
    import select

    pid, caller = _caller(connection)
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            is_held = "NoNewPrivs:\t0\n" not in file
        is_other = is_held and runner_of(pid) != runner
        return is_other or bool(select.select([caller], [], [], 0)[0])  # ended: it was not its own
    finally:
        os.close(caller)


def _caller(connection: socket.socket) -> tuple[int, int]:
    """The number of the process that connected, and a descriptor of it, not of a later one."""
    import struct

    number = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    pid: int = struct.unpack("3i", number)[0]
    try:
        found = connection.getsockopt(_socket.SOL_SOCKET, SO_PEERPIDFD, 4)
    except OSError as error:
        if error.errno != ENOPROTOOPT:
            raise
        return pid, os.pidfd_open(pid)  # a kernel before 6.5
    return pid, struct.unpack("i", found)[0]


def _request(connection: socket.socket) -> bytes:
    """One line, whole and in time."""
    parts: list[bytes] = []
    length, end = 0, time.monotonic() + CALLER_SECONDS
    while not parts or b"\n" not in parts[-1]:
        connection.settimeout(max(0.001, end - time.monotonic()))
        try:
            part = connection.recv(1 << 16)
        except TimeoutError:
            raise Refusal(
                75, "slow", "the call took too long to come", "Send it at once."
            ) from None
        if not part:
            raise Refusal(2, "invalid", "half a call", "End it with a line feed.")
        parts.append(part)
        length += len(part)
        if length > REQUEST_MAX:
            raise Refusal(2, "too_large", f"a call has at most {REQUEST_MAX} bytes", "Send less.")
    return b"".join(parts).partition(b"\n")[0]


def _passed_on(argv: list[str], request: bytes) -> bytes:
    """What a Fairlane outside answers; it gets the call on standard input."""
    env = {name: value for name, value in os.environ.items() if name != MARK}
    failed = Refusal(75, "no_answer", "Fairlane did not answer", "Check whether it was done.")
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd="/", start_new_session=True, env=env,
        )  # fmt: skip
    except OSError:
        raise failed from None
    try:
        answer, _ = process.communicate(request, timeout=CALL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise failed from None
    if not answer or len(answer) > ANSWER_MAX:
        raise failed
    return answer
