"""HTTP: many callers beside one on the store itself, and the dashboard of a long queue."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.homes import folder, home, server
from bench.measure import Row, by_turns, median_pair, show_seconds
from bench.queues import Queue, queue
from bench.sizes import Sizes
from fairlane.engine.context import Context
from fairlane.service import pull, tasks

#: How many times faster than one caller on the store so many callers should be.
ASKED = {8: ">= 2.5", 32: ">= 4"}


def rows(sizes: Sizes) -> list[Row]:
    """The rate of both, taken by turns."""
    with folder() as here:
        pulls = [row for callers in sizes.callers for row in pulled(here, callers, sizes)]
        return [*pulls, *looked(here, sizes)]


def pulled(here: Path, callers: int, sizes: Sizes) -> Iterator[Row]:
    """Leases and results a second."""
    context = home(here / f"pulls-{callers}")
    each = max(1, sizes.calls // callers)
    count = callers * each

    def more() -> None:
        tasks.add(context, [{"prompt": "Fix the login form"}] * count)

    more()
    with (
        server(context.home, "--no-page") as (address, token),
        closing(Crowd(address, token, callers)) as crowd,
    ):
        works = {"store": partial(one_at_a_time, context, count), "http": partial(crowd.work, each)}
        taken = by_turns(works, sizes.slow_turns, more)
    context.store.close()
    ours, plain = count / taken["http"], count / taken["store"]
    what = f"lease and complete over HTTP, {callers} callers (ratio of rates)"
    told = f"the store, one caller {plain:,.0f} /s"
    yield Row(what, f"{ours:,.0f} /s", told, ours / plain, ASKED.get(callers, ""))


def looked(here: Path, sizes: Sizes) -> Iterator[Row]:
    """The dashboard and its list of tasks, each time after something has changed."""
    with (
        queue(here / "small", sizes.short) as small,
        queue(here / "large", sizes.long) as large,
        server(small.home) as few,
        server(large.home) as many,
    ):
        for path in ("/", "/tasks"):
            ours, theirs = median_pair(
                partial(view, large, *many, path), partial(view, small, *few, path), sizes.turns
            )
            what = f"dashboard, first page, {path}, {sizes.long:,} queued"
            told = f"{sizes.short:,} queued {show_seconds(theirs)}"
            yield Row(what, show_seconds(ours), told, ours / theirs, "<= 1.2")


def view(seen: Queue, address: str, token: str, path: str) -> None:
    tasks.add(seen.context, [{"prompt": "One more"}])
    connection = HTTPConnection(address)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200 or b"</html>" not in text:
        raise AssertionError(f"{path}: {answer.status} {text[:200]!r}")


def one_at_a_time(context: Context, count: int) -> None:
    for _ in range(count):
        (taken,) = pull.lease(context, limit=1, worker="w")["leases"]
        pull.finish(context, taken["lease"])


class Crowd:
    """Callers in processes of their own, each with one connection and one request at a time."""

    def __init__(self, address: str, token: str, callers: int) -> None:
        here, there = zip(*(Pipe() for _ in range(callers)), strict=True)
        self._pipes = here
        self._callers = [Process(target=call, args=(pipe, address, token)) for pipe in there]
        for caller in self._callers:
            caller.start()
        self.work(0)  # until all of them are there

    def work(self, each: int) -> None:
        """Everybody leases and completes so many."""
        for pipe in self._pipes:
            pipe.send(each)
        done = sum(pipe.recv() for pipe in self._pipes)
        asked = len(self._pipes) * each
        if done != asked:
            raise AssertionError(f"{done} of {asked} were completed")

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
