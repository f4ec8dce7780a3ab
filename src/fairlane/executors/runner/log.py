"""What an agent prints, as a file: masked, bounded, whole lines."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import time

from .files import SAFE

TYPE_CHECKING = False  # `typing` itself would take longer to import than all the rest
if TYPE_CHECKING:
    from typing import BinaryIO

    from .files import Orders

#: The longest final record that is written beside the log.
RECORD_MAX = 1 << 16
#: How often it is noted when output was written, and how many bytes of such notes there are.
TIMES_NANOSECONDS = 10**9
TIMES_MAX = 1 << 22


class Times:
    """A file that says when a log grew: a byte's place and the time, at most once a second."""

    def __init__(self, path: str) -> None:
        self._path, self._left, self._noted = path, TIMES_MAX, 0
        self._file: int | None = None

    def note(self, place: int) -> None:
        """From this byte on it is written now."""
        now = time.time_ns()
        if 0 <= now - self._noted < TIMES_NANOSECONDS or self._left <= 0:
            return
        self._noted = now
        line = b"%d %d\n" % (place, now // 1000)
        if self._left <= 2 * len(line):
            line, self._left = b"%d 0\n" % place, 0  # from here on nobody knows
        self._left -= len(line)
        try:
            if self._file is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | SAFE
                self._file = os.open(self._path, flags, 0o600)
            os.write(self._file, line)
        except OSError:  # a transcript can do without
            self._left = 0

    def close(self) -> None:
        """No more output."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Log:
    """One output file: whole lines, masked, up to a size, and after them the last final record.

    Where the orders want it (`tail_bytes`), the end of what was too much is kept too.
    """

    def __init__(self, path: str, orders: Orders) -> None:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | SAFE, 0o600)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "no regular file", path)
        self._file: BinaryIO = os.fdopen(file, "ab", buffering=0)
        self._at = os.fstat(file).st_size
        self._times = Times(f"{path.removesuffix('.log')}.times")
        self._left, self._line_max = orders["max_bytes"], orders["line_max"]
        self._patterns = orders["mask"]
        self._mask: re.Pattern[bytes] | None = None  # all of them in one
        self._final = orders["final"]
        self._parts: list[bytes] = []  # of a line whose end has not come
        self._length = 0
        self.dropped = 0
        self.cut = False  # whether the disk was full
        self.finals = 0  # final records so far
        self.record = b""  # the last of them, if it is short: a full disk may cost the file its end
        self._beyond = b""  # the last of them, if it came when the file was full
        self._tail_max = orders["tail_bytes"]
        self._tail = b""  # the last of what was dropped, and as much again, so that masks fit

    def join_masks(self) -> None:
        """Prepare to hide what fits a pattern: milliseconds, which a silent agent need not cost."""
        if self._mask is not None or not self._patterns:
            return
        try:
            self._mask = re.compile("|".join(self._patterns).encode())
        except re.error as error:
            raise OSError(errno.EINVAL, f"not a regular expression: {error}", "log.mask") from error

    def feed(self, data: bytes) -> None:
        """More output."""
        whole, end, rest = data.rpartition(b"\n")
        if end:
            self._block(b"".join([*self._parts, whole, end]))
            self._parts, self._length = [], 0
        beyond = self._left <= 0 and not self._tail_max
        if beyond and not self._parts and not rest.startswith(b"{"):
            self.dropped += len(rest)  # what follows is not the beginning of a record
            self._parts, self._length = ([b" "], 1) if rest else ([], 0)
        elif rest:
            self._parts.append(rest)
            self._length += len(rest)
        if self._length > self._line_max:
            self._block(b"".join(self._parts))
            self._parts, self._length = [b" "], 1

    def close(self) -> None:
        """No more output."""
        if self._length > 1:
            self._block(b"".join(self._parts) + b"\n")
        if self._beyond:
            self._write(b"\n" + self._beyond + b"\n")
        tail = self._masked(self._tail)
        if len(tail) > self._tail_max:
            tail = tail[-self._tail_max :]
            tail = tail[tail.find(b"\n") + 1 :]
        if self.dropped:
            lost = max(0, self.dropped - len(tail))
            self._write(b"[fairlane: %d bytes were dropped]\n" % lost + tail)
        self._file.close()
        self._times.close()

    def _block(self, lines: bytes) -> None:
        """Lines, each with its end."""
        finals = self._finals(lines) if self._final and b"{" in lines else []
        self.finals += len(finals)
        if finals and len(finals[-1]) <= RECORD_MAX:
            self.record = self._masked(finals[-1])
        room = max(0, self._left)
        within, beyond = lines[:room], lines[room:]
        if within:
            self._left -= len(within)
            self._write(self._masked(within))
        self.dropped += len(beyond)
        if beyond and self._tail_max:
            self._tail = (self._tail + beyond)[-2 * self._tail_max :]
        if finals:
            kept = not beyond or finals[-1] in within
            self._beyond = b"" if kept else self._masked(finals[-1])

    def _masked(self, data: bytes) -> bytes:
        if data:
            self.join_masks()
        return self._mask.sub(b"***", data) if self._mask else data

    def _write(self, data: bytes) -> None:
        self._times.note(self._at)
        try:
            while data:
                written = self._file.write(data)
                self._at += written
                data = data[written:]
        except OSError:  # no room: the agent continues, this output is lost
            self.dropped += len(data)
            self.cut = True

    def _finals(self, lines: bytes) -> list[bytes]:
        words = [word.encode() for _, known in self._final for word in known]
        if not any(word in lines for word in words):
            return []
        records = []
        for line in lines.split(b"\n"):
            if len(line) > self._line_max or not line.startswith(b"{"):
                continue  # readers skip longer lines
            if any(word in line for word in words):
                with contextlib.suppress(ValueError, AttributeError, RecursionError):
                    record = json.loads(line)
                    if any(record.get(key) in known for key, known in self._final):
                        records.append(line)
        return records
