"""Remote: a server elsewhere, asked by the names of operations as the context is asked here."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any

from fairlane.client.requests import document_of, lost, request_of
from fairlane.client.wire import Address, Wire
from fairlane.clock import SYSTEM
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.model.instant import SECOND, parse_duration
from fairlane.service.operations.call import duration
from fairlane.service.operations.table import OPERATIONS, PAGE_MAX, WAIT_MAX

if TYPE_CHECKING:
    from fairlane.model.documents import tasks

#: How long a stream that broke is asked for again, and how often.
AGAIN_SECONDS, PAUSE_SECONDS = 60.0, 0.5
#: How often to poll a growing log.
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

    def ask(self, name: str, /, **arguments: object) -> Any:
        """The operation's answer; raises the errors of the server."""
        if name == "list":
            return self._list(arguments)
        if name == "lease" and arguments.get("wait"):
            return self._lease(arguments)
        operation = OPERATIONS.get(name)
        return self._one(name, arguments, operation.lasts if operation else 0.0)

    def events(self, after: int, task: str | None = None) -> Iterator[tasks.FollowedEvent]:
        """Every event after a number, then new ones; reconnects when a stream breaks."""
        known, broken = False, 0.0  # before the first event a failure is an error at once
        while True:
            try:
                with closing(self._events(after, task)) as stream:
                    for event in stream:
                        known, broken = True, 0.0
                        if event is not None:
                            after = event["number"]
                            if task in (None, event["task"]):
                                yield event
            except (HTTPException, OSError, TryLater) as error:
                broken = broken or SYSTEM.monotonic()
                if known and SYSTEM.monotonic() - broken < AGAIN_SECONDS:
                    pass
                elif isinstance(error, FairlaneError):
                    raise
                else:
                    raise lost(self.url, str(error), repeatable=True) from error
            SYSTEM.wait(PAUSE_SECONDS)

    def log(
        self, task: str, attempt: int | None, stream: str, follow: bool, check: str | None = None
    ) -> Iterator[str]:
        """What an attempt printed, from the start; with `follow`, until it has ended."""
        place = 0
        while True:
            which = {"task": task, "attempt": attempt, "stream": stream, "check": check}
            page = self._one("logs", which | {"offset": place})
            attempt, place = page["attempt"], page["next"]
            if page["text"]:
                yield page["text"]
            elif page["ended"] or not follow:
                return
            else:
                SYSTEM.wait(POLL_SECONDS)

    def _one(self, name: str, arguments: Mapping[str, object], waits: float = 0.0) -> Any:
        status, body = self._wire.exchange(request_of(name, arguments), waits)
        return document_of(self.url, status, body)

    def _list(self, arguments: dict[str, object]) -> tasks.TasksAnswer:
        """All tasks that fit, at most `limit`, page by page."""
        limit = arguments.pop("limit", None)
        most = limit if isinstance(limit, int) else None
        rows: list[tasks.TaskDocument] = []
        while True:
            size = PAGE_MAX if most is None else min(PAGE_MAX, most - len(rows))
            page: tasks.TasksAnswer = self._one("list", arguments | {"limit": size})
            rows += page["tasks"]
            if page["cursor"] is None or (most is not None and len(rows) >= most):
                page["tasks"] = rows
                return page
            arguments["cursor"] = page["cursor"]

    def _lease(self, arguments: dict[str, object]) -> tasks.LeasesAnswer:
        """Wait as long as the caller asks, in calls that wait as long as one may."""
        longest = parse_duration(WAIT_MAX) / SECOND
        ends = SYSTEM.monotonic() + duration(arguments.pop("wait")) / SECOND
        while True:
            part = max(0.0, min(longest, ends - SYSTEM.monotonic()))
            document: tasks.LeasesAnswer = self._one(
                "lease", arguments | {"wait": part}, waits=part
            )
            if document["leases"] or SYSTEM.monotonic() >= ends:
                return document

    def _events(
        self, after: int, task: str | None
    ) -> Generator[tasks.FollowedEvent | None, None, None]:
        """The events of one stream, until it breaks or is closed; None: it has begun."""
        more = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        with self._wire.stream(request_of("events", {"task": task}), more) as answer:
            if answer.headers.get_content_type() == "text/event-stream":
                yield None
                yield from _decode(answer)
            else:
                document_of(self.url, answer.status, answer.read(PAGE_MAX * 1000))


def _decode(stream: HTTPResponse) -> Iterator[tasks.FollowedEvent]:
    """The events of a stream; it ends when the stream does."""
    data: list[str] = []
    for raw in stream:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif not line and data:
            event: tasks.FollowedEvent = {"schema": "fairlane/1"} | json.loads("\n".join(data))
            data = []
            if "number" in event:
                yield event
