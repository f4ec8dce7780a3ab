"""Lines of a run's output with their places, and the times at which they were written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fairlane.executors.base import Executor
from fairlane.executors.runfiles import CHUNK, read_part
from fairlane.executors.runner.log import TIMES_MAX
from fairlane.model.amounts import LINE_MAX


class PlacedLine(NamedTuple):
    """One line, or a part of one that is longer than `LINE_MAX`."""

    start: int  # its first byte
    end: int  # the first byte of what follows
    data: bytes
    whole: bool = True

    @property
    def text(self) -> str:
        """What it says."""
        return self.data.decode("utf-8", "replace")


class PlacedLines:
    """The lines of a stream from a byte on, in bounded memory.

    It stops when it has read `room` bytes. A line whose end has not come is left for later, unless
    the attempt has `ended`.
    """

    def __init__(
        self, executor: Executor, run: Path, stream: str, start: int, room: int, ended: bool
    ) -> None:
        self._executor, self._run, self._stream = executor, run, stream
        self._start, self._room, self._ended = start, room, ended
        self.at_end = False  # whether everything was read that is there

    def __iter__(self) -> Iterator[PlacedLine]:
        if self._start > self._executor.output_size(self._run, self._stream):
            self.at_end = True  # whoever named this place did not read here
            return
        start, left, within = self._start, b"", self._starts_within_a_line()
        while True:
            data = self._executor.output(self._run, self._stream, start + len(left), CHUNK)
            if not data:
                self.at_end = True
                if left and self._ended:
                    yield PlacedLine(start, start + len(left), left, not within)
                return
            *ended, left = (left + data).split(b"\n")
            for line in ended:
                *parts, last = _cut(line)
                for part in parts:
                    yield PlacedLine(start, start + LINE_MAX, part, whole=False)
                    start += LINE_MAX
                yield PlacedLine(start, start + len(last) + 1, last, not (within or parts))
                start, within = start + len(last) + 1, False
            *parts, left = _cut(left)
            for part in parts:
                yield PlacedLine(start, start + LINE_MAX, part, whole=False)
                start, within = start + LINE_MAX, True
            if start - self._start >= self._room:
                return

    def _starts_within_a_line(self) -> bool:
        before = self._start - 1
        return before >= 0 and self._executor.output(self._run, self._stream, before, 1) != b"\n"


def _cut(line: bytes) -> list[bytes]:
    """A line in parts of `LINE_MAX` and the rest of it."""
    return [line[at : at + LINE_MAX] for at in range(0, max(1, len(line)), LINE_MAX)]


class WriteTimes:
    """When the bytes of a stream were written, as its runner noted: offset and microseconds."""

    def __init__(self, run: Path, stream: str) -> None:
        self._offsets: list[int] = []
        self._times: list[int] = []
        try:
            noted = read_part(run / f"{stream}.times", 0, TIMES_MAX)
        except OSError:
            return
        for line in noted.split(b"\n"):
            offset, _, time = line.partition(b" ")
            if offset.isdigit() and time.isdigit() and len(line) <= 40:
                self._offsets.append(int(offset))
                self._times.append(int(time))

    def at(self, offset: int) -> int | None:
        """When this byte was written, to the second; None: nobody knows."""
        found = bisect_right(self._offsets, offset)
        return (self._times[found - 1] or None) if found else None
