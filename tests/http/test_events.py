"""Events as they happen: none is lost, none comes twice, wherever a listener begins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.http.listening import Listener, numbers
from tests.http.served import Server, serving
from tests.waiting import LIMIT_SECONDS


def add(server: Server, *names: str) -> int:
    """Tasks; the number of the last event after that."""
    server.ask("POST", "/tasks", {"tasks": [{"id": name, "prompt": "x"} for name in names]})
    return newest(server)


def newest(server: Server) -> int:
    return int(server.ask("GET", "/events?limit=1")["cursor"])


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, LIMIT_SECONDS))


def test_what_was_and_what_comes(server: Server):
    first = add(server, "a", "b")

    async def listen() -> None:
        listener = Listener(server, after=0)
        assert await listener.connect() == 200
        await listener.until(first)
        last = await asyncio.to_thread(add, server, "c", "d")
        await listener.until(last)
        listener.close()
        assert numbers(listener) == list(range(1, last + 1))
        assert listener.events == (server.ask("GET", "/events?cursor=0"))["events"]

    run(listen())


def test_by_default_only_what_comes(server: Server):
    async def listen() -> None:
        listener = Listener(server)
        await listener.connect()
        last = await asyncio.to_thread(add, server, "e")
        await listener.until(last)
        listener.close()
        assert [event["task"] for event in listener.events] == ["e"]

    run(listen())


def test_the_header_counts_more_than_the_address(server: Server):
    last = add(server, "f", "g")

    async def listen() -> None:
        listener = Listener(server, after=last - 1, query="?cursor=0")
        await listener.connect()
        await listener.until(last)
        listener.close()
        assert numbers(listener) == [last]

    run(listen())


def test_only_of_one_task(server: Server):
    add(server, "h", "i")

    async def listen() -> None:
        listener = Listener(server, query="?cursor=0&task=i")
        await listener.connect()
        await asyncio.to_thread(server.ask, "POST", "/tasks/h/cancel")
        await asyncio.to_thread(server.ask, "POST", "/tasks/i/cancel")
        await listener.until(newest(server))
        listener.close()
        assert [(each["kind"], each["task"]) for each in listener.events] == [
            ("added", "i"),
            ("canceled", "i"),
        ]

    run(listen())


def test_bad_places_are_refused(server: Server):
    for number in ("first", "9" * 16, "9" * 30):
        reply = server.call(
            "GET", "/api/v1/events", Accept="text/event-stream", Last_Event_ID=number
        )
        assert (reply.status, reply.code) == (422, "invalid")
    reply = server.call("GET", "/api/v1/events?limt=1", Accept="text/event-stream")
    assert (reply.status, reply.code) == (422, "invalid")


@pytest.mark.slow
def test_a_restart_loses_nothing(tmp_path):
    with serving(tmp_path) as server:

        async def listen() -> None:
            listener = Listener(server, after=0)
            await listener.connect()
            await listener.until(await asyncio.to_thread(add, server, "a"))
            ending = asyncio.ensure_future(listener.until_over())
            assert await asyncio.to_thread(server.stop) == 143
            assert await ending, "a stream ends cleanly when the server does"
            listener.close()
            await asyncio.to_thread(server.start)
            between = await asyncio.to_thread(add, server, "b")
            again = Listener(server, after=listener.last)
            await again.connect()
            await again.until(between)
            await again.until(await asyncio.to_thread(add, server, "c"))
            again.close()
            both = numbers(listener) + numbers(again)
            assert both == list(range(1, newest(server) + 1))

        run(listen())


@pytest.mark.slow
def test_streams_are_bounded(tmp_path):
    with serving(tmp_path) as server:

        async def listen() -> None:
            many = [Listener(server) for _ in range(512)]
            for each in many:
                assert await each.connect() == 200
            one_more = Listener(server)
            assert await one_more.connect() == 503
            assert server.call("GET", "/api/v1/status").status == 200
            for each in (*many[:10], one_more):
                each.close()
            status = 503
            while status == 503:  # until the server has seen that they hung up
                await asyncio.sleep(0.05)
                again = Listener(server)
                status = await again.connect()
                again.close()
            assert status == 200
            for each in many:
                each.close()

        run(listen())
