"""Logs: what an attempt printed, as text; its folder is found from the store, never from a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as Signal
from typing import Any

from fairlane.model.errors import Invalid, NotFound
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


def read(desk: Desk, task: str, attempt: int | None = None, stream: str = "stdout") -> str:
    """The whole log as text; nothing was printed yet: empty."""
    path = log_path(desk, task, attempt, stream)
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def page(
    desk: Desk, task: str, attempt: int | None, stream: str, offset: int | None, limit: int
) -> dict[str, Any]:
    """A part of a log from a byte on, at most `limit`; without a place: the end of it."""
    path = log_path(desk, task, attempt, stream)
    number = int(path.parent.name)
    ended = _has_ended(desk, task, number)  # before reading: what comes after is not missed
    size = path.stat().st_size if path.exists() else 0
    start = max(0, size - limit) if offset is None else min(offset, size)
    data = b""
    if size > start:
        with path.open("rb") as held:
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
    number, place, pause = int(path.parent.name), 0, Signal()
    while True:
        ended = _has_ended(desk, task, number)
        if path.exists():
            with path.open("rb") as held:
                held.seek(place)
                data = held.read()
            place += len(data)
            if data:
                yield data.decode("utf-8", "replace")
        if ended:
            return
        pause.wait(POLL_SECONDS)


def _has_ended(desk: Desk, task: str, number: int) -> bool:
    with desk.store.read() as reading:
        return any(a.number == number and a.ended_at is not None for a in reading.attempts(task))
