"""Metrics: how things stand and what has happened since the start, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead.app.office import Office
from fairlead.http.answers import Answer
from fairlead.http.streams import Streams
from fairlead.model.instant import Instant


class Metrics:
    """Counts requests, and tells everything when asked."""

    def __init__(self, office: Office, streams: Streams, now: Callable[[], Instant]) -> None:
        self._office, self._streams, self._now = office, streams, now
        self._requests: Counter[tuple[str, str, int]] = Counter()

    async def begin(self) -> None:
        """Count from here on."""

    def counting(self, app: ASGIApp) -> ASGIApp:
        """The application, its requests counted by route and status."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return

            async def counting_send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    route = scope.get("fairlead.route", "other")
                    self._requests[scope["method"], route, message["status"]] += 1
                await send(message)

            await app(scope, receive, counting_send)

        return counted

    async def answer(self, scope: Scope) -> Answer:
        """Everything."""
        return Answer(200, b"", [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")])
