"""Which of our files and functions five calls pass: `python -m bench.paths [--names]`.

A function counts when it runs; importing a module does not. The calls are `add`, `why` of a paused
task, four leases over HTTP at once, one cycle of the daemon up to the launch, and one exit up to
the settled task.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

import fairlane
from fairlane.app import open_context
from fairlane.app.shared_queue import SharedQueue
from fairlane.cli.main import run
from fairlane.clock import SystemClock
from fairlane.http.app import Bound, Served
from fairlane.http.identity import Secrets

OURS = str(Path(fairlane.__file__).parent) + os.sep
#: Functions between which a cycle, and an exit, are followed; each must run.
LAUNCH = frozenset({"Daemon._schedule", "Launcher._launch", "Supervisor.take_launched"})
SETTLE = frozenset({"Supervisor.settle_ended"})
TOKEN, PORT = "x" * 40, 4999
#: The thread that tells listeners of events; no call waits for it.
WATCHER = "watch"


class Trace:
    """The functions that run, in every thread; with `inside`, those called by functions of it."""

    def __init__(self, inside: frozenset[str] = frozenset()) -> None:
        self.passed: set[tuple[str, str]] = set()
        self.on = True
        self._inside, self._depth = inside, threading.local()

    def __enter__(self) -> Trace:
        threading.setprofile(self._step)
        sys.setprofile(self._step)
        return self

    def __exit__(self, *problem: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        missing = self._inside - {name for _, name in self.passed}
        assert not missing, f"never ran: {', '.join(sorted(missing))}"

    def _step(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if threading.current_thread().name == WATCHER:
            return
        if event not in ("call", "return") or not code.co_filename.startswith(OURS):
            return
        depth = getattr(self._depth, "value", 0)
        if code.co_qualname in self._inside:
            depth += 1 if event == "call" else -1
            self._depth.value = depth
        is_function = code.co_flags & CO_OPTIMIZED  # the bodies of modules and classes are not
        counts = self.on and (depth or not self._inside) and is_function
        if event == "call" and counts:
            self.passed.add((code.co_filename.removeprefix(OURS), code.co_qualname))


@contextmanager
def silent() -> Iterator[None]:
    """Nothing of this goes to standard output."""
    sys.stdout.flush()
    out = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(out, 1)
        os.close(out)
        os.close(null)


def command(home: Path, *words: str) -> None:
    """One command, in this process."""
    with silent():
        assert run(["--home", str(home), *words]) == 0, words


def traced(call: Callable[[], None], inside: frozenset[str] = frozenset()) -> set[tuple[str, str]]:
    with Trace(inside) as trace:
        call()
    return trace.passed


def add_and_why(home: Path) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    command(home, "init")
    command(home, "project", "add", "web")
    command(home, "add", "--", "true")
    words = ("add", "--project", "web", "--id", "second", "--", "true")
    yield "add", traced(lambda: command(home, *words))
    command(home, "pause")
    yield "why", traced(lambda: command(home, "why", "second"))


def leases(home: Path) -> set[tuple[str, str]]:
    """Four calls of `lease` at once, at a server that has answered one before."""
    command(home, "init")
    command(home, "policy", "set", "caps.all=30")
    for number in range(8):
        command(home, "add", "--id", f"h{number}", "--", "true")
    with Trace() as trace:
        trace.on = False
        asyncio.run(_lease(home, trace))
    return trace.passed


async def _lease(home: Path, trace: Trace) -> None:
    queue = SharedQueue(lambda: open_context(home))
    served = Served(queue, home, Secrets(TOKEN, TOKEN), SystemClock().now, Bound("127.0.0.1", PORT))
    messages: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    up = asyncio.Event()

    async def send(message: object) -> None:
        up.set()

    await messages.put({"type": "lifespan.startup"})
    scope = {"type": "lifespan", "state": {}, "asgi": {"version": "3.0"}}
    serving = asyncio.ensure_future(served.app(scope, messages.get, send))
    await up.wait()
    await _call(served, "w9")
    trace.on = True
    answers = await asyncio.gather(*(_call(served, f"w{number}") for number in range(4)))
    trace.on = False
    assert all(len(answer["leases"]) == 1 for answer in answers), answers
    await messages.put({"type": "lifespan.shutdown"})
    await serving


async def _call(served: Served, worker: str) -> dict[str, list[object]]:
    body = json.dumps({"limit": 1, "worker": worker}).encode()
    asked: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": body, "more_body": False}
    ]
    parts: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        while not asked:
            await asyncio.Event().wait()
        return asked.pop()

    async def send(message: MutableMapping[str, Any]) -> None:
        parts.append(message)

    headers = {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {TOKEN}"}
    headers |= {"content-type": "application/json", "content-length": str(len(body))}
    path = "/api/v1/leases"
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", PORT),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "state": {}, "extensions": {},
    }  # fmt: skip
    await served.app(scope, receive, send)
    answer: dict[str, list[object]] = json.loads(parts[1]["body"])
    return answer


def daemon(home: Path) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    command(home, "init")
    for name, inside in (("one cycle to launch", LAUNCH), ("exit to settled", SETTLE)):
        command(home, "add", "--", "true")
        yield name, traced(lambda: command(home, "run"), inside)


def main(words: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-paths-") as folder:
        here = Path(folder)
        found = dict(add_and_why(here / "one"))
        found["four leases over HTTP"] = leases(here / "two")
        found |= dict(daemon(here / "three"))
    for name, passed in found.items():
        files = {file for file, _ in passed}
        print(f"{name}: {len(files)} files, {len(passed)} functions")
        for file, function in sorted(passed) if "--names" in words else ():
            print(f"    {file} {function}")


if __name__ == "__main__":
    main(sys.argv[1:])
