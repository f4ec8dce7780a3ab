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
from types import ModuleType
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
#: Where a command's modules are: most are imported when it comes to them.
PACKAGES = ("fairlane.cli", "fairlane.app", "fairlane.service", "fairlane.store", "fairlane.daemon")
#: Where to answer, what is asked, and the three that every process has.
STREAMS = 5


class Ended(subprocess.CompletedProcess[bytes]):
    """What a command left behind, as `subprocess.run` tells it."""


def run(words: Sequence[str], env: Mapping[str, str], cwd: Path, given: bytes = b"",
        seconds: float | None = None) -> Ended:  # fmt: skip
    """One command line of `fairlane`, in a process of its own."""
    mask = os.umask(0)
    os.umask(mask)
    request = {
        "words": list(words), "env": dict(env), "cwd": str(cwd), "mask": mask,
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    }  # fmt: skip
    with ExitStack() as stack:
        texts = (json.dumps(request).encode("utf-8", "surrogateescape"), given, b"", b"")
        files = [stack.enter_context(os.fdopen(os.memfd_create("text"), "w+b")) for _ in texts]
        for file, text in zip(files, texts, strict=True):
            file.write(text)
            file.seek(0)
        ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
        socket.send_fds(_server(), [b"x"], [theirs.fileno(), *(file.fileno() for file in files)])
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
    sys.argv = ["fairlane", *request["words"]]
    main()


if __name__ == "__main__":
    import_all()
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
