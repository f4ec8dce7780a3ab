"""Logs: what an attempt printed, as text; the store names the attempt, never a path."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.engine.checks import folder_named
from fairlane.engine.context import Context, run_folder
from fairlane.executors.base import STREAMS
from fairlane.executors.runfiles import CHUNK, Damaged
from fairlane.model.errors import Invalid, Refused
from fairlane.model.names import SCHEMA
from fairlane.model.task import Attempt
from fairlane.service.attempt_named import attempt_named, task_named

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import LogAnswer

#: How often a followed log is looked at.
POLL_SECONDS = 0.1
#: Most of a log that one answer holds.
PAGE_BYTES_MAX = 256 * 1024
#: Most bytes of one letter.
LETTER_BYTES = 4


def read(
    context: Context,
    task: str,
    attempt: int | None = None,
    stream: str = "stdout",
    check: str | None = None,
) -> Iterator[str]:
    """The whole log as text, part by part; what is no UTF-8 is kept as surrogates."""
    yield from Log(context, task, attempt, stream, check).more()


def page(
    context: Context,
    task: str,
    attempt: int | None = None,
    stream: str = "stdout",
    offset: int | None = None,
    limit: int = PAGE_BYTES_MAX,
    check: str | None = None,
) -> LogAnswer:
    """What an attempt or a check printed, as text: from a place on, or the end of it."""
    limit = min(limit, PAGE_BYTES_MAX)
    log = Log(context, task, attempt, stream, check)
    ended = log.has_ended()  # asked before reading, so that the last lines are not missed
    size = log.size()
    start = max(0, size - limit) if offset is None else min(offset, size)
    data = _whole(log.read(start, limit))
    return {
        "schema": SCHEMA,
        "task": task,
        "attempt": log.attempt.number,
        "stream": stream,
        "offset": start,
        "next": start + len(data),
        "size": max(size, start + len(data)),
        "ended": ended,
        "text": data.decode("utf-8", "replace"),
    }


def check_page(
    context: Context,
    task: str,
    name: str,
    attempt: int | None = None,
    stream: str = "stdout",
    offset: int | None = None,
    limit: int = PAGE_BYTES_MAX,
) -> LogAnswer:
    """What a check printed, as text: from a place on, or the end of it."""
    return page(context, task, attempt, stream, offset, limit, name)


def _whole(data: bytes) -> bytes:
    """Bytes without the beginning of a letter at their end: the next page starts with it."""
    for back in range(1, min(LETTER_BYTES, len(data))):
        if data[-back] >= 0xC0:  # a letter begins here; its first byte says how long it is
            needs = 2 if data[-back] < 0xE0 else 3 if data[-back] < 0xF0 else 4
            return data[:-back] if back < needs else data
        if data[-back] < 0x80:
            break
    return data


def follow(
    context: Context,
    task: str,
    attempt: int | None = None,
    stream: str = "stdout",
    check: str | None = None,
) -> Iterator[str]:
    """The log as it grows, until its attempt or its check has ended."""
    log = Log(context, task, attempt, stream, check)
    while True:
        ended = log.has_ended()
        yield from log.more()
        if ended:
            return
        context.clock.wait(POLL_SECONDS)


class Log:
    """One stream of an attempt or of one of its checks; as text, as far as it has grown.

    The last attempt if none is named.
    """

    def __init__(
        self, context: Context, task: str, number: int | None, stream: str, check: str | None = None
    ) -> None:
        if stream not in STREAMS:
            raise Invalid(f"no stream {stream!r}", f"Known: {', '.join(STREAMS)}.")
        self._context, self.stream, self._at = context, stream, 0
        with context.store.read() as reading:
            task_named(reading, task)
            self.attempt = attempt_named(reading, task, number)
        self.executor, self.check = context.executor(), check
        self.run = _folder(context, self.attempt, check)
        self._decoder = getincrementaldecoder("utf-8")("surrogateescape")

    def size(self) -> int:
        """How many bytes there are."""
        return self.executor.output_size(self.run, self.stream)

    def read(self, offset: int, limit: int) -> bytes:
        """Some bytes from a place on."""
        with self.readable():
            return self.executor.output(self.run, self.stream, offset, limit)

    @contextmanager
    def readable(self) -> Iterator[None]:
        """What is wrong with the file is told."""
        try:
            yield
        except Damaged as error:
            hint = "Its agent has changed its run folder; `fairlane show` tells how it ended."
            where = f"{self.run}: {self.stream}"
            raise Refused(f"{where} cannot be read: {error}", hint) from error

    def more(self) -> Iterator[str]:
        """As far as it has grown."""
        while data := self.read(self._at, CHUNK):
            self._at += len(data)
            yield self._decoder.decode(data)

    def has_ended(self) -> bool:
        """Whether nothing more comes."""
        with self._context.store.read() as reading:
            attempt = reading.attempt(self.attempt.lease)
        return attempt is None or has_ended(attempt, self.check)


def has_ended(attempt: Attempt, check: str | None) -> bool:
    """Whether an attempt, or its check of this name, prints nothing more."""
    rows = [row for row in attempt.checks if row["name"] == check]
    over = any(row.get("passed") is not None for row in rows)
    return attempt.ended_at is not None or over


def _folder(context: Context, attempt: Attempt, check: str | None) -> Path:
    """Where it leaves its traces."""
    if check is None:
        return run_folder(context.home, attempt)
    return folder_named(context.home, attempt, check)
