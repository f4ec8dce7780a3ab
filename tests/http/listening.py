"""Listeners of the event stream, many of them in one loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.http.served import Server


class Listener:
    """One stream: every event that came, in the order in which it came."""

    def __init__(self, server: Server, after: int | None = None, query: str = "") -> None:
        self._server, self._query = server, query
        self.last = after
        self.events: list[dict[str, Any]] = []
        self.comments = 0
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._held = b""

    async def connect(self) -> int:
        """The status of the answer."""
        lines = [f"GET /api/v1/events{self._query} HTTP/1.1"]
        lines += [f"Host: 127.0.0.1:{self._server.port}", "Accept: text/event-stream"]
        lines += [f"Authorization: Bearer {self._server.token}"]
        lines += [f"Last-Event-ID: {self.last}"] if self.last is not None else []
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head.split()[1])
        if status == 200:
            assert b"text/event-stream" in head
            while not self.comments:
                await self._chunk()
        return status

    async def until(self, number: int) -> None:
        """Listen until this event has come, or the stream is over."""
        while (self.last or 0) < number and await self._chunk():
            pass

    async def until_over(self) -> bool:
        """Listen to the end; whether the end was clean."""
        while await self._chunk():
            pass
        return self._clean

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    _clean = False

    async def _chunk(self) -> bool:
        assert self._reader is not None
        try:
            size = int(await self._reader.readline() or b"-1", 16)
            data = await self._reader.readexactly(size + 2) if size >= 0 else b""
        except (ConnectionError, asyncio.IncompleteReadError):
            return False
        self._clean = size == 0
        if size <= 0:
            return False
        *frames, self._held = (self._held + data[:-2]).split(b"\n\n")
        for frame in frames:
            self._take(frame.decode())
        return True

    def _take(self, frame: str) -> None:
        fields = dict(line.partition(": ")[::2] for line in frame.splitlines())
        if "data" not in fields:
            self.comments += 1
            return
        event = json.loads(fields["data"])
        assert (int(fields["id"]), fields["event"]) == (event["number"], event["kind"])
        self.events.append(event)
        self.last = event["number"]


def numbers(listener: Listener) -> list[int]:
    return [event["number"] for event in listener.events]
