"""Parts of a transcript for somebody who reads it from its end: the last, the one before, the next.

However long a log is, one part reads and holds little of it. Entries know the byte at which their
line begins, so that a reader can let go of some and ask for them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from fairlane.agents.transcript import Entry, Numbered, Place, Transcript, shown
from fairlane.engine.context import Context
from fairlane.executors.placed_lines import PlacedLine, PlacedLines, WriteTimes
from fairlane.service.logs import Log
from fairlane.service.reports.documents import answer_of
from fairlane.service.transcripts import entry_document, parser_of

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import EntryDocument

#: How many entries a part has, and how many more it may have because lines are not cut.
ENTRIES = 200
ENTRIES_MAX = 800
#: How much of a log is read for a part; more only where a single line is longer.
PART_BYTES = 256 * 1024
LONG_LINE_BYTES = 4 * 1024 * 1024


class Part(NamedTuple):
    """Some entries, each with the byte at which its line begins."""

    attempt: int
    entries: list[tuple[int, EntryDocument]]
    start: int  # where the part begins; 0: nothing is before it
    cursor: str  # where the transcript goes on after it
    ended: bool  # the attempt has ended, and this is all of it


def part(
    context: Context,
    task: str,
    attempt: int | None = None,
    cursor: str | None = None,
    before: int | None = None,
) -> Part:
    """The end of a transcript, or what stands before a byte, or what follows a cursor."""
    log = Log(context, task, attempt, "stdout")
    ended = log.attempt.ended_at is not None  # known before reading: no last line is missed
    with log.readable():
        if cursor is not None:
            place, end = Place.parse(cursor), None
        else:
            end = None if before is None else min(before, log.size())
            place = Place(_line_start(log, log.size() if end is None else end))
        return _Reader(context, log, place, ended).read(end, forward=cursor is not None)


def _line_start(log: Log, end: int) -> int:
    """The byte at which a part begins that stops at `end`."""
    for room in (PART_BYTES, LONG_LINE_BYTES):
        if end <= room:
            return 0
        found = log.read(end - room, room - 1).find(b"\n")
        if found >= 0:
            return end - room + found + 1
    return end - PART_BYTES  # in the middle of a line without end


class _Reader:
    """Reads one part."""

    def __init__(self, context: Context, log: Log, place: Place, ended: bool) -> None:
        self._log, self._place, self._ended = log, place, ended
        parser = parser_of(context, log)
        self._transcript = Transcript(parser, place)
        self._times = WriteTimes(log.run, log.stream)

    def read(self, end: int | None, forward: bool) -> Part:
        """Every entry up to `end`; the first ones if it goes forward, else the last."""
        log, start = self._log, self._place.offset
        room = PART_BYTES if forward else LONG_LINE_BYTES
        lines = PlacedLines(log.executor, log.run, log.stream, start, room, self._ended)
        rows: list[tuple[int, EntryDocument]] = []
        for number, offset, entry in self._entries(lines, end):
            at = self._times.at(offset)
            rows.append((offset, entry_document(number, at, entry)))
            if forward and len(rows) >= ENTRIES:
                break
            if len(rows) >= 2 * ENTRIES_MAX:
                del rows[:ENTRIES_MAX]
        whole = self._ended and lines.at_end and end is None
        if whole:
            self._close(rows)
        kept = rows if forward else _last(rows)
        begins = kept[0][0] if len(kept) < len(rows) else start
        return Part(log.attempt.number, kept, begins, str(self._transcript.place), whole)

    def _entries(self, lines: PlacedLines, end: int | None) -> Iterator[Numbered]:
        wanted: Iterator[PlacedLine] = iter(lines)
        if end is not None:
            wanted = takewhile(lambda line: line.start < end, wanted)
        yield from self._transcript.read(wanted)
        if self._ended or end is not None or not lines.at_end:
            yield from self._transcript.rest()

    def _close(self, rows: list[tuple[int, EntryDocument]]) -> None:
        """After the last line stands the answer, once."""
        attempt, place = self._log.attempt, self._transcript.place
        answer = answer_of(attempt)
        if answer and not place.skip:
            entry = entry_document(place.number, attempt.ended_at, shown(Entry("answer", answer)))
            rows.append((place.offset, entry))
            self._transcript.place = Place(place.offset, 1, place.number + 1)


def _last(rows: list[tuple[int, EntryDocument]]) -> list[tuple[int, EntryDocument]]:
    """The last entries, beginning with a whole line unless that is too long."""
    if len(rows) <= ENTRIES:
        return rows
    first = rows[-ENTRIES][0]
    return [row for row in rows if row[0] >= first][-ENTRIES_MAX:]
