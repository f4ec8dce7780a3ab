"""Logs: what an attempt printed, as text; the store names the attempt, never a path."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlane.engine.context import Context, run_folder
from fairlane.executors.base import STREAMS
from fairlane.executors.runfiles import CHUNK, Damaged
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.model.names import SCHEMA
from fairlane.model.task import Attempt

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import LogAnswer

#: How often a followed log is looked at.
POLL_SECONDS = 0.1
#: Most of a log that one answer holds.
PAGE_BYTES_MAX = 256 * 1024
#: Most bytes of one letter.
LETTER_BYTES = 4


def read(
    context: Context, task: str, attempt: int | None = None, stream: str = "stdout"
) -> Iterator[str]:
    """The whole log as text, part by part."""
    yield from _Log(context, task, attempt, stream).more()


def page(
    context: Context,
    task: str,
    attempt: int | None = None,
    stream: str = "stdout",
    offset: int | None = None,
    limit: int = PAGE_BYTES_MAX,
) -> LogAnswer:
    """What an attempt printed, as text: from a place on, or the end of it."""
    limit = min(limit, PAGE_BYTES_MAX)
    log = _Log(context, task, attempt, stream)
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
    context: Context, task: str, attempt: int | None = None, stream: str = "stdout"
) -> Iterator[str]:
    """The log as it grows, until its attempt has ended."""
    log = _Log(context, task, attempt, stream)
    while True:
        ended = log.has_ended()
        yield from log.more()
        if ended:
            return
        context.clock.wait(POLL_SECONDS)


class _Log:
    """One stream of an attempt, the last one if none is named; as text, as far as it has grown."""

    def __init__(self, context: Context, task: str, number: int | None, stream: str) -> None:
        if stream not in STREAMS:
            raise Invalid(f"no stream {stream!r}", f"Known: {', '.join(STREAMS)}.")
        self._context, self._stream, self._at = context, stream, 0
        self.attempt = _attempt(context, task, number)
        self._executor = context.executor()
        self._run = run_folder(context.home, self.attempt)
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def size(self) -> int:
        return self._executor.output_size(self._run, self._stream)

    def read(self, offset: int, limit: int) -> bytes:
        try:
            return self._executor.output(self._run, self._stream, offset, limit)
        except Damaged as error:
            hint = "Its agent has changed its run folder; `fairlane show` tells how it ended."
            where = f"{self._run}: {self._stream}"
            raise Refused(f"{where} cannot be read: {error}", hint) from error

    def more(self) -> Iterator[str]:
        while data := self.read(self._at, CHUNK):
            self._at += len(data)
            yield self._decoder.decode(data)

    def has_ended(self) -> bool:
        with self._context.store.read() as reading:
            attempt = reading.attempt(self.attempt.lease)
        return attempt is None or attempt.ended_at is not None


def _attempt(context: Context, task: str, number: int | None) -> Attempt:
    with context.store.read() as reading:
        if reading.task(task) is None:
            hint = "`fairlane list` shows what there is."
            raise NotFound(f"there is no task {task!r}", hint, code="unknown_task")
        attempts = {attempt.number: attempt for attempt in reading.attempts(task)}
    if not attempts:
        raise NotFound(f"{task} has not been started", f"`fairlane why {task}` tells why.")
    if number is None:
        return attempts[max(attempts)]
    if number not in attempts:
        known = ", ".join(map(str, attempts))
        raise NotFound(f"{task} has no attempt {number}", f"It has {known}.")
    return attempts[number]
