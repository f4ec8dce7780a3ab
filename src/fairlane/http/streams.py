"""Event streams: every event once, in order, as it happens."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlane.app.event_hub import Listener, server_sent
from fairlane.app.shared_queue import SharedQueue
from fairlane.http.messages import HttpError, header, to_json
from fairlane.model.documents.tasks import EventDocument, EventsAnswer
from fairlane.model.errors import Invalid
from fairlane.service.operations.call import fitting
from fairlane.service.operations.table import OPERATIONS

#: Most streams at once.
STREAMS_MAX = 512
#: A sign of life when nothing happens.
HEARTBEAT_SECONDS = 15.0
#: Events of one read, while a listener catches up; frames that are kept for others.
PAGE, FRAMES_MAX = 500, 2_000
_HEAD = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]

_END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


class Streams:
    """All that listen; they end when the server does."""

    def __init__(self, queue: SharedQueue) -> None:
        self._queue = queue
        self._closing = asyncio.Event()
        self._frames: OrderedDict[int, bytes] = OrderedDict()
        self.count = 0

    def close(self) -> None:
        """End every stream; clients resume at their last event."""
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
        self, scope: Scope, receive: Receive, send: Send, arguments: Mapping[str, object]
    ) -> None:
        """One stream, until one of the two ends."""
        values = fitting(OPERATIONS["events"], {**arguments, **_remembered(scope)})
        cursor = values.get("cursor")
        only = {name: str(values[name]) for name in ("task", "kind") if values.get(name)}
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
            stream = _Stream(self, self._queue, send, only)
            await stream.run(receive, cursor if isinstance(cursor, int) else None, self._closing)
        finally:
            self.count -= 1

    def frame(self, event: EventDocument) -> bytes:
        """An event as it is sent; encoded once for all streams."""
        number = event["number"]
        data = self._frames.get(number)
        if data is None:
            text = server_sent(event["kind"], to_json(event), f"id: {number}")
            data = self._frames[number] = text.encode("utf-8", "replace")
            if len(self._frames) > FRAMES_MAX:
                self._frames.popitem(last=False)
        return data


class _Stream:
    """One listener's stream."""

    def __init__(
        self, streams: Streams, queue: SharedQueue, send: Send, only: Mapping[str, str]
    ) -> None:
        self._streams, self._queue, self._send = streams, queue, send
        self._only = only  # its events have these values
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
            for task in (telling, *ends):
                task.cancel()
            await asyncio.gather(telling, *ends, return_exceptions=True)
        if not telling.cancelled() and telling.exception() is not None:
            raise telling.exception()  # type: ignore[misc]
        await self._send(_END)

    async def _tell(self, cursor: int | None) -> None:
        self._last = self._queue.events.newest if cursor is None else cursor
        await self._catch_up()  # most of it, before anything is kept for this listener
        listener = self._queue.events.listen()
        try:
            await self._catch_up()  # what came until it listened
            await self._live(listener)
        finally:
            self._queue.events.leave(listener)

    async def _catch_up(self) -> None:
        """Everything that is there, page by page."""
        while True:
            arguments = {"cursor": self._last, "limit": PAGE, **self._only}
            page: EventsAnswer = await self._queue.ask("events", arguments)
            await self._frames(page["events"])
            if len(page["events"]) < PAGE:
                return

    async def _live(self, listener: Listener) -> None:
        """New events; all that are queued go out in one write."""
        while True:
            try:
                events = [await asyncio.wait_for(listener.queue.get(), HEARTBEAT_SECONDS)]
            except TimeoutError:
                await self._body(b": alive\n\n")
                continue
            while not listener.queue.empty():
                events.append(listener.queue.get_nowait())
            await self._frames([event for event in events if event is not None])
            if None in events:  # too slow: the client resumes at its last event
                return

    async def _frames(self, events: list[EventDocument]) -> None:
        parts = []
        for event in events:
            if event["number"] > self._last:
                self._last = event["number"]
                if self._only.items() <= event.items():
                    parts.append(self._streams.frame(event))
        if parts:
            await self._body(b"".join(parts))

    async def _body(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _remembered(scope: Scope) -> dict[str, int]:
    """The event after which to resume; the header beats the query."""
    text = header(scope, b"last-event-id").decode("latin-1").strip()
    if not text:
        return {}
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise Invalid(f"Last-Event-ID: not a number: {text[:40]!r}", "Send the `id` of an event.")
    return {"cursor": int(text)}
