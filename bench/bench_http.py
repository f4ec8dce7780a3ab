"""HTTP: eight callers beside one on the store itself, and the page of a long queue."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from bench.measure import Row, median_pair, show_seconds
from bench.queues import Queue, queue
from fairlane.app import open_context
from fairlane.engine.context import Context
from fairlane.service import pull, tasks

CALLERS, EACH, TURNS = 8, 60, 7
VIEWS, SMALL, LARGE = 15, 1_000, 1_000_000
POLICY = 'preset = "balanced"\n[caps]\nall = 1000\n[backpressure]\nsoft = "none"\nhard = "none"\n'


def rows() -> list[Row]:
    """The rate of both, taken by turns."""
    here = Path(tempfile.mkdtemp(prefix=".bench-http-", dir=Path(__file__).parent))
    try:
        pulls = here / "pulls"
        pulls.mkdir()
        return [*pulled(pulls), *looked(here)]
    finally:
        shutil.rmtree(here, ignore_errors=True)


def pulled(here: Path) -> Iterator[Row]:
    """Leases and results a second."""
    (here / "policy.toml").write_text(POLICY, encoding="utf-8")
    context = open_context(here)
    direct, served = [], []
    with server(here, "--no-page") as (address, token), closing(Crowd(address, token)) as crowd:
        for _ in range(TURNS + 1):
            tasks.add(context, [{"prompt": "Fix the login form"}] * (2 * CALLERS * EACH))
            direct.append(rate(lambda: one_at_a_time(context)))
            served.append(rate(crowd.work))
    ours, plain = median(served[1:]), median(direct[1:])
    what = f"lease and complete over HTTP, {CALLERS} callers (ratio of rates)"
    yield Row(
        what, f"{ours:,.0f} /s", f"the store, one caller {plain:,.0f} /s", ours / plain, ">= 2"
    )


def looked(here: Path) -> Iterator[Row]:
    """The page, and its list of tasks, each time after something has changed."""
    with (
        queue(here / "small", SMALL) as small,
        queue(here / "large", LARGE) as large,
        server(small.home) as few,
        server(large.home) as many,
    ):
        for path in ("/", "/tasks"):
            ours, theirs = median_pair(
                partial(view, large, *many, path), partial(view, small, *few, path), VIEWS
            )
            what = f"the page, {path}, with {LARGE:,} queued"
            told = f"with {SMALL:,} {show_seconds(theirs)}"
            yield Row(what, show_seconds(ours), told, ours / theirs, "<= 1.5")


def view(seen: Queue, address: str, token: str, path: str) -> None:
    tasks.add(seen.context, [{"prompt": "One more"}])
    connection = HTTPConnection(address)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200 or b"</html>" not in text:
        raise AssertionError(f"{path}: {answer.status} {text[:200]!r}")


def rate(work: Any) -> float:
    """Tasks a second."""
    start = perf_counter()
    work()
    return CALLERS * EACH / (perf_counter() - start)


def one_at_a_time(context: Context) -> None:
    for _ in range(CALLERS * EACH):
        (taken,) = pull.lease(context, limit=1, worker="w")["leases"]
        pull.finish(context, taken["lease"])


class Crowd:
    """Callers in processes of their own, each with one connection and one request at a time."""

    def __init__(self, address: str, token: str) -> None:
        here, there = zip(*(Pipe() for _ in range(CALLERS)), strict=True)
        self._pipes = here
        self._callers = [Process(target=call, args=(pipe, address, token)) for pipe in there]
        for caller in self._callers:
            caller.start()
        self.work(0)  # until all of them are there

    def work(self, each: int = EACH) -> None:
        """Everybody leases and completes so many."""
        for pipe in self._pipes:
            pipe.send(each)
        done = sum(pipe.recv() for pipe in self._pipes)
        if done != CALLERS * each:
            raise AssertionError(f"{done} of {CALLERS * each} were completed")

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for caller in self._callers:
            caller.join()


def call(pipe: Connection, address: str, token: str) -> None:
    """One caller, until it is told to end."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as line:
        head = f"Host: {address}\r\nAuthorization: Bearer {token}\r\n"
        while (each := pipe.recv()) is not None:
            for _ in range(each):
                taken = post(line, head, "leases", '{"limit":1,"worker":"w"}')
                lease = taken["leases"][0]["lease"]
                post(line, head, f"leases/{lease}/complete", "{}")
            pipe.send(each)


def post(line: socket.socket, head: str, path: str, body: str) -> Any:
    """One request, made with as little as possible: the server is measured, not its callers."""
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
    line.sendall(f"POST /api/v1/{path} HTTP/1.1\r\n{head}{kind}\r\n\r\n{body}".encode())
    text = line.recv(65536)
    start, _, rest = text.partition(b"\r\n\r\n")
    length = int(start.partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(rest) < length:
        rest += line.recv(65536)
    if not start.startswith(b"HTTP/1.1 200"):
        raise AssertionError(f"{path}: {text!r}")
    return json.loads(rest)


@contextmanager
def server(home: Path, *options: str) -> Iterator[tuple[str, str]]:
    """A server of its own on this home: where it listens, and its token."""
    words = [sys.executable, "-m", "fairlane", "--home", str(home), "serve", "--port", "0"]
    with subprocess.Popen([*words, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().removeprefix("serving").strip()
            yield urlsplit(url).netloc, (home / "token").read_text().strip()
        finally:
            process.terminate()
