"""Two hundred listeners and fifty who lease at once: nothing is lost, and memory is bounded.

A daemon works on the same home meanwhile; how long its cycles took is printed beside what they took
without the crowd.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from tests.http.listening import Listener, numbers
from tests.http.served import Server, fairlane, serving
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.slow
LISTENERS, LEASERS, EACH, OWN = 200, 50, 4, 12
#: What a crowd may leave in memory: queues, frames and buffers of connections.
GROWTH_BYTES = 64 * 1024 * 1024


class Caller:
    """One kept connection, one request at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(body).encode()
        lines = [f"POST /api/v1{path} HTTP/1.1", f"Host: 127.0.0.1:{self._server.port}"]
        lines += [f"Authorization: Bearer {self._server.token}", f"Content-Length: {len(data)}"]
        lines += ["Content-Type: application/json"]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + data)
        head = await self._reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].split()[0])
        document: dict[str, Any] = json.loads(await self._reader.readexactly(size))
        assert head.startswith(b"HTTP/1.1 200 "), document
        return document

    def close(self) -> None:
        self._writer.close()


async def work(server: Server, name: str) -> list[str]:
    """Lease and complete one after the other; the tasks that were done."""
    caller = Caller(server)
    done: list[str] = []
    await caller.connect()
    while len(done) < EACH:
        asked = {"limit": 1, "worker": f"w-{name}", "wait": 5, "labels": ["crowd"]}
        for lease in (await caller.post("/leases", asked))["leases"]:
            body = {"tokens": 3, "result": {"by": name}}
            ended = await caller.post(f"/leases/{lease['lease']}/complete", body)
            assert ended["status"] == "done"
            done.append(lease["task"])
    caller.close()
    return done


async def crowd(server: Server, total: int) -> tuple[list[Listener], list[str], int]:
    """Who listened, what was done, and the last event that everybody has heard."""
    listeners = [Listener(server, after=0) for _ in range(LISTENERS)]
    await asyncio.gather(*(each.connect() for each in listeners))
    hearing = [asyncio.ensure_future(each.until_over()) for each in listeners]
    found = await asyncio.gather(*(work(server, str(number)) for number in range(LEASERS)))
    last = await asyncio.to_thread(quiet, server, total)
    while any((each.last or 0) < last for each in listeners):
        await asyncio.sleep(0.05)
    for each, task in zip(listeners, hearing, strict=True):
        each.close()
        task.cancel()
    await asyncio.gather(*hearing, return_exceptions=True)
    return listeners, [task for each in found for task in each], last


def quiet(server: Server, total: int) -> int:
    """The number of the last event, when everything is done."""
    with_all = {"done": total}
    while True:
        tasks = server.ask("GET", "/projects/default")["project"]["tasks"]
        if {key: count for key, count in tasks.items() if count} == with_all:
            return int(server.ask("GET", "/events?limit=1")["cursor"])


def test_a_crowd_loses_nothing(tmp_path, capsys):
    (tmp_path / "policy.toml").write_text("caps.all = 500\n")
    (tmp_path / "fairlane.toml").write_text("worker.slots = 4\n")
    with serving(tmp_path) as server:
        assert fairlane(tmp_path, "up", "--detach", "--no-server").returncode == 0
        try:
            alone = own_work(server, "alone")
            quiet(server, OWN)
            before = server.memory()
            pulled = [
                {"id": f"p{number}", "prompt": "x", "labels": ["crowd"]}
                for number in range(LEASERS * EACH)
            ]
            server.ask("POST", "/tasks", {"tasks": pulled})
            total = 2 * OWN + LEASERS * EACH
            beside = own_work(server, "beside")
            asked = asyncio.wait_for(crowd(server, total), 2 * LIMIT_SECONDS)
            listeners, done, last = asyncio.run(asked)
            after = server.memory()
        finally:
            fairlane(tmp_path, "down")
        assert Counter(done) == Counter(each["id"] for each in pulled), "each once, none twice"
        heard = {tuple(n for n in numbers(each) if n <= last) for each in listeners}
        assert len(heard) == 1, "everybody heard the same"
        assert list(heard.pop()) == list(range(1, last + 1)), "and all of it"
        assert after - before < GROWTH_BYTES
        took = {
            name: cycle_waits(server, names)
            for name, names in (("alone", alone), ("beside", beside))
        }
        with capsys.disabled():
            grown = (after - before) / 2**20
            print(
                f"\n{LISTENERS} listeners, {LEASERS} leasers, {last} events: {grown:.0f} MiB more"
            )
            print(f"waits of the daemon's own tasks, middle / longest, in seconds: {took}")


def own_work(server: Server, name: str) -> list[str]:
    """Tasks for the daemon's own worker."""
    tasks: list[dict[str, Any]] = [
        {"id": f"{name}-{number}", "command": ["true"], "agent": "shell"} for number in range(OWN)
    ]
    server.ask("POST", "/tasks", {"tasks": tasks})
    return [each["id"] for each in tasks]


def cycle_waits(server: Server, names: list[str]) -> str:
    """From ready to leased, the middle and the longest."""
    from fairlane.model.instant import parse_instant

    waits = []
    for name in names:
        told = server.ask("GET", f"/tasks/{name}")
        assert told["task"]["status"] == "done"
        leased = parse_instant(told["attempts"][0]["leased_at"])
        waits.append((leased - parse_instant(told["task"]["ready_since"])) / 1_000_000)
    waits.sort()
    return f"{waits[len(waits) // 2]:.2f} / {waits[-1]:.2f}"
