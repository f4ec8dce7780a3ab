"""Logs: what an attempt printed, as text; its folder is found from the store, never from a path."""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Signal
from typing import Any, BinaryIO

from fairlane.executors.runfiles import CHUNK, Damaged, opened
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk

#: How often a followed log is looked at.
POLL_SECONDS = 0.1
STREAMS = ("stdout", "stderr")
#: Most bytes of one letter.
LETTER_BYTES = 4


def log_path(desk: Desk, task: str, attempt: int | None = None, stream: str = "stdout") -> Path:
    """The log of an attempt, the last one if none is named."""
    if stream not in STREAMS:
        raise Invalid(f"no stream {stream!r}", f"Known: {', '.join(STREAMS)}.")
    with desk.store.read() as reading:
        if reading.task(task) is None:
            raise NotFound(f"no task {task!r}", "`fairlane list` shows what there is.")
        numbers = [each.number for each in reading.attempts(task)]
    if not numbers:
        raise NotFound(f"{task} has not been started", f"`fairlane why {task}` tells why.")
    number = numbers[-1] if attempt is None else attempt
    if number not in numbers:
        known = ", ".join(map(str, numbers))
        raise NotFound(f"{task} has no attempt {number}", f"It has {known}.")
    return desk.home / "runs" / task / str(number) / f"{stream}.log"


def read(
    desk: Desk, task: str, attempt: int | None = None, stream: str = "stdout"
) -> Iterator[str]:
    """The whole log as text, part by part."""
    yield from _Text(log_path(desk, task, attempt, stream)).more()


def page(
    desk: Desk, task: str, attempt: int | None, stream: str, offset: int | None, limit: int
) -> dict[str, Any]:
    """A part of a log from a byte on, at most `limit`; without a place: the end of it."""
    path = log_path(desk, task, attempt, stream)
    number = int(path.parent.name)
    ended = _has_ended(desk, task, number)  # before reading: what comes after is not missed
    size, start, data = 0, 0, b""
    with _readable(path) as held:
        if held is not None:
            size = os.fstat(held.fileno()).st_size
            start = max(0, size - limit) if offset is None else min(offset, size)
            held.seek(start)
            data = _whole(held.read(limit))
    return {
        "schema": SCHEMA,
        "task": task,
        "attempt": number,
        "stream": stream,
        "offset": start,
        "next": start + len(data),
        "size": size,
        "ended": ended,
        "text": data.decode("utf-8", "replace"),
    }


def _whole(data: bytes) -> bytes:
    """Bytes without the beginning of a letter at their end: the next page starts with it."""
    for back in range(1, min(LETTER_BYTES, len(data))):
        if data[-back] >= 0xC0:  # a letter begins here, and needs so many bytes
            needs = 2 if data[-back] < 0xE0 else 3 if data[-back] < 0xF0 else 4
            return data[:-back] if back < needs else data
        if data[-back] < 0x80:
            break
    return data


def follow(
    desk: Desk, task: str, attempt: int | None = None, stream: str = "stdout"
) -> Iterator[str]:
    """The log as it grows, until its attempt has ended."""
    path = log_path(desk, task, attempt, stream)
    number, text, pause = int(path.parent.name), _Text(path), Signal()
    while True:
        ended = _has_ended(desk, task, number)
        yield from text.more()
        if ended:
            return
        pause.wait(POLL_SECONDS)


class _Text:
    """A log as text, in parts, as far as it has grown."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def more(self) -> Iterator[str]:
        with _readable(self._path) as held:
            if held is None:
                return
            held.seek(self._place)
            while data := held.read(CHUNK):
                self._place += len(data)
                yield self._decoder.decode(data)


@contextmanager
def _readable(path: Path) -> Iterator[BinaryIO | None]:
    """A log that can be read; None: nothing was printed yet."""
    try:
        held = opened(path)
    except FileNotFoundError:
        yield None
        return
    except Damaged as error:
        hint = "Its agent has changed its run folder; `fairlane show` tells how it ended."
        raise Refused(f"{path} cannot be read: {error}", hint) from error
    with held:
        yield held


def _has_ended(desk: Desk, task: str, number: int) -> bool:
    with desk.store.read() as reading:
        return any(a.number == number and a.ended_at is not None for a in reading.attempts(task))
