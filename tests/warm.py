"""Commands in processes that fork from one which has imported Fairlane: the start costs nothing.

Such a process has its own number, environment, folder, mask, limits and streams, runs
`fairlane.cli.main.main`, and ends as any other does. What matters before that, from the
interpreter's start to `__main__`, is tried by tests that start `python -m fairlane` themselves.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any, NoReturn
from unittest import mock

ROOT = Path(__file__).parents[1]
#: Where a command's modules are: most are imported when it comes to them.
PACKAGES = ("fairlane.cli", "fairlane.app", "fairlane.service", "fairlane.store", "fairlane.daemon")
#: Where to answer, what is asked, and the three that every process has.
STREAMS = 5
#: More than a command has open when it forks a daemon.
OPEN_FILES = 64


class Ended(subprocess.CompletedProcess[bytes]):
    """What a command left behind, as `subprocess.run` tells it."""


def run(words: Sequence[str], env: Mapping[str, str], cwd: Path, given: bytes = b"",
        seconds: float | None = None, *, daemon: bool = False) -> Ended:  # fmt: skip
    """One command line of `fairlane`, in a process of its own.

    `daemon`: the one that `up --detach` starts is forked too. Its environment shows nothing then.
    """
    mask = os.umask(0)
    os.umask(mask)
    request = {
        "words": list(words), "env": dict(env), "cwd": str(cwd), "mask": mask,
        "files": resource.getrlimit(resource.RLIMIT_NOFILE), "daemon": daemon,
        "stays": signal.getsignal(signal.SIGHUP) == signal.SIG_IGN,  # as under `nohup`
    }  # fmt: skip
    with ExitStack() as stack:
        texts = (json.dumps(request).encode("utf-8", "surrogateescape"), given, b"", b"")
        files = [stack.enter_context(os.fdopen(os.memfd_create("text"), "w+b")) for _ in texts]
        for file, text in zip(files, texts, strict=True):
            file.write(text)
            file.seek(0)
        ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
        _send([theirs.fileno(), *(file.fileno() for file in files)])
        theirs.close()
        code = _answer(ours, list(words), seconds)
        said = []
        for file in files[2:]:
            file.seek(0)
            said.append(file.read())
        return Ended(list(words), code, *said)


def _answer(ours: socket.socket, words: list[str], seconds: float | None) -> int:
    """Its exit code; it is killed when it takes too long."""
    ours.settimeout(seconds)
    with ours.makefile("r") as lines:
        pid = int(lines.readline())
        try:
            return int(lines.readline())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(words, seconds or 0) from None


def _send(streams: list[int]) -> None:
    """Ask the server; a new one where a test has ended all processes that it could see."""
    try:
        socket.send_fds(_server(), [b"x"], streams)
    except BrokenPipeError:
        _server.cache_clear()
        socket.send_fds(_server(), [b"x"], streams)


@functools.cache
def _server() -> socket.socket:
    """The process that forks, started when it is first needed; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT / "src")}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
            cwd=ROOT, env=env, pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# From here on what runs in the process that forks.


def import_all() -> None:
    """Every module that a command could import."""
    for name in PACKAGES:
        package: ModuleType = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith("__main__"):
                with suppress(Exception):  # a command that needs it says what is wrong
                    importlib.import_module(found.name)


def serve(control: socket.socket) -> None:
    """Fork for every request, until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that keep
    while True:
        text, streams, _, _ = socket.recv_fds(control, 1, STREAMS)
        if not text:
            return
        if os.fork() == 0:
            control.close()
            keep(streams)
        for each in streams:
            os.close(each)


def keep(streams: list[int]) -> NoReturn:
    """Fork the command, and tell its number and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reply, asked, *standard = streams
    with os.fdopen(asked, "rb") as file:
        request = json.loads(file.read().decode("utf-8", "surrogateescape"))
    if (pid := os.fork()) == 0:
        os.close(reply)
        become(request, standard)
    os.write(reply, f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):  # whoever asked has given up
        os.write(reply, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def become(request: dict[str, Any], standard: list[int]) -> NoReturn:
    """Be the command."""
    from fairlane.cli.main import main

    for number, each in enumerate(standard):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    os.umask(request["mask"])
    resource.setrlimit(resource.RLIMIT_NOFILE, tuple(request["files"]))
    signal.signal(signal.SIGHUP, signal.SIG_IGN if request["stays"] else signal.SIG_DFL)
    sys.argv = ["fairlane", *request["words"]]
    if request["daemon"]:
        stand_in = SimpleNamespace(Popen=ForkedDaemon, DEVNULL=subprocess.DEVNULL)
        mock.patch("fairlane.cli.work.daemon.subprocess", stand_in).start()
    main()


class ForkedDaemon:
    """Stands for `subprocess.Popen` in `up --detach`: the daemon is forked from it."""

    def __init__(self, words: Sequence[str], *, stdin: int, stdout: IO[bytes], stderr: IO[bytes],
                 start_new_session: bool) -> None:  # fmt: skip
        assert words[1:3] == ["-m", "fairlane"]
        assert (stdin, stdout, start_new_session) == (subprocess.DEVNULL, stderr, True)
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout.fileno(), 1)
            os.dup2(stdout.fileno(), 2)
            os.closerange(3, OPEN_FILES)
            become_daemon(words[3:])

    def poll(self) -> int | None:
        """Its exit code once it has ended."""
        return self.wait(os.WNOHANG)

    def wait(self, how: int = 0) -> int | None:
        """Its exit code when it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def terminate(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGTERM)


def become_daemon(words: Sequence[str]) -> NoReturn:
    """Be the daemon: the command that forked it goes on in its parent alone."""
    from fairlane.cli.main import main

    sys.argv = ["fairlane", *words]
    code: object = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    finally:
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    import_all()
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
