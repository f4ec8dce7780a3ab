"""Remote: a server elsewhere, asked by the names of operations as the desk is asked here."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from http.client import HTTPException, HTTPResponse
from threading import Event as Pause
from time import monotonic
from typing import Any

from fairlane.client.address import Address
from fairlane.client.answers import document_of, lost
from fairlane.client.requests import Request, request_of
from fairlane.client.wire import SILENCE_SECONDS, Wire
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.model.instant import SECOND, parse_duration
from fairlane.service.operations.table import PAGE_MAX, WAIT_MAX

#: How long a stream that broke is asked for again, and how often.
AGAIN_SECONDS, PAUSE_SECONDS = 60.0, 0.5
#: How often a log that grows is looked at.
POLL_SECONDS = 0.3


class Remote:
    """The operations of a server: `ask(name, **arguments)` gives the same document as there."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self._wire = Wire(Address.of(url), token)

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing more is asked."""
        self._wire.close()

    def ask(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The operation's answer; what the server refuses is raised as it is raised there."""
        if name == "list":
            return self._list(arguments)
        if name == "lease" and arguments.get("wait"):
            return self._lease(arguments)
        return self._one(name, arguments)

    def events(self, after: int, task: str | None = None) -> Iterator[dict[str, Any]]:
        """Every event after a number, and those that come; a broken stream goes on by itself."""
        known, broken = False, 0.0  # at first, nobody there is an error at once
        while True:
            try:
                with closing(self._events(after, task)) as stream:
                    for event in stream:
                        known, broken = True, 0.0
                        after = event.get("number", after)
                        if event and task in (None, event["task"]):
                            yield event
            except (HTTPException, OSError, TryLater) as error:
                broken = broken or monotonic()
                if known and monotonic() - broken < AGAIN_SECONDS:
                    pass
                elif isinstance(error, FairlaneError):
                    raise
                else:
                    raise lost(self.url, str(error), repeatable=True) from error
            Pause().wait(PAUSE_SECONDS)

    def log(self, task: str, attempt: int | None, stream: str, follow: bool) -> Iterator[str]:
        """What an attempt printed, from the start; with `follow`, until it has ended."""
        place = 0
        while True:
            page = self._one(
                "logs", {"task": task, "attempt": attempt, "stream": stream, "offset": place}
            )
            attempt, place = page["attempt"], page["next"]
            if page["text"]:
                yield page["text"]
            elif page["ended"] or not follow:
                return
            else:
                Pause().wait(POLL_SECONDS)

    def _one(self, name: str, arguments: Mapping[str, Any], waits: float = 0.0) -> dict[str, Any]:
        status, body = self._wire.exchange(request_of(name, arguments), waits)
        return document_of(self.url, status, body)

    def _list(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """All tasks that fit, at most `limit`, page by page."""
        left: int | None = arguments.pop("limit", None)
        held: list[Any] = []
        while True:
            size = PAGE_MAX if left is None else min(PAGE_MAX, left - len(held))
            page = self._one("list", arguments | {"limit": size})
            held += page["tasks"]
            if page["cursor"] is None or (left is not None and len(held) >= left):
                return page | {"tasks": held}
            arguments["cursor"] = page["cursor"]

    def _lease(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Wait as long as it was said, in calls that wait as long as one may."""
        wait, most = arguments.pop("wait"), parse_duration(WAIT_MAX) / SECOND
        seconds = parse_duration(wait) / SECOND if isinstance(wait, str) else float(wait)
        ends = monotonic() + seconds
        while True:
            part = max(0.0, min(most, ends - monotonic()))
            document = self._one("lease", arguments | {"wait": part}, waits=part)
            if document["leases"] or monotonic() >= ends:
                return document

    def _events(self, after: int, task: str | None) -> Generator[dict[str, Any], None, None]:
        """The events of one stream, until it breaks or is closed; first an empty one: it began."""
        path = request_of("events", {"task": task}).target
        more = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        request = Request("GET", path, None, repeatable=True)
        with self._wire.stream(request, more, SILENCE_SECONDS * 2) as answer:
            if answer.headers.get_content_type() == "text/event-stream":
                yield {}
                yield from _told(answer)
            else:
                document_of(self.url, answer.status, answer.read(PAGE_MAX * 1000))


def _told(stream: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The events of a stream; it ends when the stream does."""
    data: list[str] = []
    for raw in stream:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif not line and data:
            told = json.loads("\n".join(data))
            data = []
            if "number" in told:
                yield {"schema": "fairlane/1", **told}
