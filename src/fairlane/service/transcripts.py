"""Transcripts: what an agent said and did in an attempt, page by page, also while it grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlane.agents.contract import agents
from fairlane.agents.parsers import parser_for
from fairlane.agents.records import is_cut
from fairlane.agents.transcript import Entry, Numbered, Place, Transcript, shown
from fairlane.engine.context import Context
from fairlane.executors.placed_lines import PlacedLines, WriteTimes
from fairlane.model.instant import Instant, show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import Project, Tokens
from fairlane.model.task import SHELL, agent_of
from fairlane.service.logs import Log, has_ended
from fairlane.service.reports.documents import answer_of, counters

if TYPE_CHECKING:
    from fairlane.agents.contract import Parser
    from fairlane.model.documents.tasks import EntryDocument, TranscriptAnswer

#: Most bytes of texts that one page holds, and of output that is read for it.
PAGE_BYTES = 256 * 1024
READ_BYTES = 16 * 1024 * 1024
#: How many entries a page holds if nothing is said.
PAGE = 100


def page(
    context: Context,
    task: str,
    attempt: int | None = None,
    cursor: str | None = None,
    limit: int = PAGE,
    since: Instant | None = None,
    stream: str = "stdout",
    check: str | None = None,
) -> TranscriptAnswer:
    """What an agent said and did: its words, tools, results, turns and its answer.

    `cursor` goes on from there; a page that gives it back unchanged had nothing new.
    """
    log = Log(context, task, attempt, stream, check)
    ended = has_ended(log.attempt, check)  # known before reading: no last line is missed
    reader = _Page(log, parser_of(context, log), Place.parse(cursor), limit, since)
    with log.readable():
        reader.fill(ended)
    return {
        "schema": SCHEMA,
        "task": task,
        "attempt": log.attempt.number,
        "entries": reader.rows,
        "cursor": str(reader.place),
        "ended": reader.is_last,
    }


class _Page:
    """Some entries of one attempt."""

    def __init__(
        self, log: Log, parser: Parser, place: Place, limit: int, since: Instant | None
    ) -> None:
        self._log, self._limit, self._since = log, limit, since
        self._transcript, self.place = Transcript(parser, place), place
        self._times: WriteTimes | None = None
        self._bytes = 0
        self.rows: list[EntryDocument] = []
        self.is_last = False  # the attempt has ended, and everything was told

    def fill(self, ended: bool) -> None:
        """Read until the page is full, or there is no more."""
        log, transcript = self._log, self._transcript
        start = self.place.offset
        lines = PlacedLines(log.executor, log.run, log.stream, start, READ_BYTES, ended)
        if self._take(transcript.read(lines)) and (ended or not lines.at_end):
            self._take(transcript.rest())
        self.place = transcript.place
        if ended and lines.at_end and not self._is_full:
            self._close()

    @property
    def _is_full(self) -> bool:
        return len(self.rows) >= self._limit or self._bytes >= PAGE_BYTES

    def _take(self, entries: Iterator[Numbered]) -> bool:
        """Add entries; False: the page is full."""
        for number, offset, entry in entries:
            self._add(number, self._time(offset), entry)
            if self._is_full:
                return False
        return True

    def _close(self) -> None:
        """After the last line stands the answer, once."""
        attempt, place = self._log.attempt, self.place
        answer = answer_of(attempt)
        if not place.skip and answer and _is_the_agents(self._log):
            cut = is_cut(answer) or answer != (attempt.result or {}).get("answer")
            entry = shown(Entry("answer", answer, truncated=cut))
            self._add(place.number, attempt.ended_at, entry)
            self.place = Place(place.offset, 1, place.number + 1)
        self.is_last = True

    def _time(self, offset: int) -> Instant | None:
        if self._times is None:
            self._times = WriteTimes(self._log.run, self._log.stream)
        return self._times.at(offset)

    def _add(self, number: int, at: Instant | None, entry: Entry) -> None:
        if self._since is not None and at is not None and at < self._since:
            return
        self._bytes += len(entry.text)
        self.rows.append(entry_document(number, at, entry))


def entry_document(number: int, at: Instant | None, entry: Entry) -> EntryDocument:
    """An entry as callers get it."""
    return {
        "n": number,
        "at": _when(at),
        "kind": entry.kind,
        "text": entry.text,
        "tool": entry.tool or None,
        "argument": entry.argument if entry.tool else None,
        "truncated": entry.truncated,
        "tokens": None if entry.tokens is None else counters(entry.tokens),
    }


def _when(at: Instant | None) -> str | None:
    """A time; an agent can change the notes of times, so one outside the calendar is none."""
    try:
        return None if at is None else show_instant(at)
    except (ValueError, OverflowError):
        return None


def _is_the_agents(log: Log) -> bool:
    """Whether this is what the agent itself tells; error output and checks are lines."""
    return log.stream == "stdout" and log.check is None


def parser_of(context: Context, log: Log) -> Parser:
    """Who reads what the attempt printed; of an agent that left the settings lines are shown."""
    known, attempt = agents(context.settings), log.attempt
    if not _is_the_agents(log):
        return parser_for(known[SHELL])
    with context.store.read() as reading:
        task, project = reading.task(attempt.task), reading.table(Project).get(attempt.project)
        before = [row for row in reading.attempts(attempt.task) if row.fence < attempt.fence]
    default, has_command = context.settings.agent, task is not None and bool(task.command)
    usual = project.agent if project is not None else None
    name = agent_of(attempt.agent, usual, default, has_command)
    used = [row.tokens for row in before if row.session and row.session == attempt.session]
    baseline = Tokens(*map(sum, zip(*used, strict=True))) if used else None
    return parser_for(known.get(name) or known[SHELL], baseline)
