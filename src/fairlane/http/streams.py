"""Streams: events as they happen, to whoever listens; none is lost and none comes twice."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.app.office import Listener, Office
from fairlane.http.answers import HttpError, to_json
from fairlane.http.bodies import header
from fairlane.model.errors import Invalid
from fairlane.service.operations.checking import fitting
from fairlane.service.operations.table import OPERATIONS
from fairlane.service.operations.values import Document

#: Most streams at once.
STREAMS_MAX = 512
#: A sign of life when nothing happens.
HEARTBEAT_SECONDS = 15.0
#: Events of one read, while a listener catches up; frames that are kept for others.
PAGE, FRAMES_MAX = 500, 2_000
_HEAD = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]

_END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


class Streams:
    """All that listen; they end when the server does."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._closing = asyncio.Event()
        self._frames: OrderedDict[int, bytes] = OrderedDict()
        self.count = 0

    def close(self) -> None:
        """Every stream ends; who listened comes back where it was."""
        self._closing.set()

    async def until_closed(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """For what streams by itself: when the server ends, its caller has hung up."""
        is_open = False

        async def receive_or_end() -> Message:
            message = asyncio.ensure_future(receive())
            closing = asyncio.ensure_future(self._closing.wait())
            try:
                await asyncio.wait({message, closing}, return_when=asyncio.FIRST_COMPLETED)
                return message.result() if message.done() else {"type": "http.disconnect"}
            finally:
                message.cancel()
                closing.cancel()

        async def sending(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        await app(scope, receive_or_end, sending)
        if is_open and self._closing.is_set():
            await send(_END)

    async def follow(
        self, scope: Scope, receive: Receive, send: Send, arguments: Mapping[str, Any]
    ) -> None:
        """One stream, until one of the two ends."""
        given = fitting(OPERATIONS["events"], {**arguments, **_remembered(scope)})
        cursor = given.get("cursor")
        if self.count >= STREAMS_MAX or self._closing.is_set():
            hint = "Read pages with ?cursor=N meanwhile."
            wait = [(b"retry-after", b"5")]
            raise HttpError(503, "busy", f"{self.count} streams are open", hint, wait)
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": _HEAD})
            await send({"type": "http.response.body"})
            return
        self.count += 1
        try:
            stream = _Stream(self, self._office, send, given.get("task"))
            await stream.run(receive, cursor, self._closing)
        finally:
            self.count -= 1

    def frame(self, event: Document) -> bytes:
        """An event as it is sent; written once for all who listen."""
        number: int = event["number"]
        found = self._frames.get(number)
        if found is None:
            text = b"id: %d\nevent: %s\ndata: %s\n\n"
            found = text % (number, event["kind"].encode(), to_json(event))
            self._frames[number] = found
            if len(self._frames) > FRAMES_MAX:
                self._frames.popitem(last=False)
        return found


class _Stream:
    """One listener's stream."""

    def __init__(self, streams: Streams, office: Office, send: Send, task: str | None) -> None:
        self._streams, self._office, self._send, self._task = streams, office, send, task
        self._last = 0  # the number of the last event that was sent or passed over

    async def run(self, receive: Receive, cursor: int | None, closing: asyncio.Event) -> None:
        """Send until the caller hangs up, lags too far behind, or the server closes."""
        await self._send({"type": "http.response.start", "status": 200, "headers": _HEAD})
        await self._body(b"retry: 1000\n: fairlane\n\n")
        telling = asyncio.ensure_future(self._tell(cursor))
        ends = [asyncio.ensure_future(closing.wait()), asyncio.ensure_future(_hung_up(receive))]
        try:
            await asyncio.wait({telling, *ends}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (telling, *ends):
                each.cancel()
            await asyncio.gather(telling, *ends, return_exceptions=True)
        if not telling.cancelled() and telling.exception() is not None:
            raise telling.exception()  # type: ignore[misc]
        await self._send(_END)

    async def _tell(self, cursor: int | None) -> None:
        self._last = self._office.newest if cursor is None else cursor
        await self._catch_up()  # most of it, before anything is kept for this listener
        listener = self._office.listen()
        try:
            await self._catch_up()  # what came until it listened
            await self._live(listener)
        finally:
            self._office.leave(listener)

    async def _catch_up(self) -> None:
        """Everything that is there, page by page."""
        while True:
            given = {"cursor": self._last, "limit": PAGE} | (
                {"task": self._task} if self._task else {}
            )
            page = await self._office.ask("events", given)
            await self._frames(page["events"])
            if len(page["events"]) < PAGE:
                return

    async def _live(self, listener: Listener) -> None:
        """What happens from now on; all that is there goes out as one."""
        while True:
            try:
                events = [await asyncio.wait_for(listener.queue.get(), HEARTBEAT_SECONDS)]
            except TimeoutError:
                await self._body(b": alive\n\n")
                continue
            while not listener.queue.empty():
                events.append(listener.queue.get_nowait())
            await self._frames([each for each in events if each is not None])
            if None in events:  # too slow: it comes back with the number that it has
                return

    async def _frames(self, events: list[Document]) -> None:
        parts = []
        for event in events:
            if event["number"] > self._last:
                self._last = event["number"]
                if self._task is None or event["task"] == self._task:
                    parts.append(self._streams.frame(event))
        if parts:
            await self._body(b"".join(parts))

    async def _body(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _remembered(scope: Scope) -> dict[str, int]:
    """After which event it goes on; what the browser remembers counts more than the address."""
    text = header(scope, b"last-event-id").decode("latin-1").strip()
    if not text:
        return {}
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise Invalid(f"Last-Event-ID: not a number: {text[:40]!r}", "Send the `id` of an event.")
    return {"cursor": int(text)}
