"""Gemini CLI, `-o stream-json`: one record a line, the last of type `result` with its stats.

The total of its tokens includes thinking; what is not input counts as output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.agents import verdicts
from fairlane.agents.contract import Facts, OutputLine, Verdict
from fairlane.agents.parsers.base import RecordParser, begun
from fairlane.agents.records import count, last_line, one_line, table, text, words
from fairlane.agents.transcript import Entry, failed, resulted, said, turned, used
from fairlane.model.amounts import ANSWER_BYTES
from fairlane.model.project import Tokens
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.instant import Instant

#: What its exit codes mean, where they say more than that it failed.
_EXITS = {42: "bad input", 44: "no sandbox", 52: "bad settings", 55: "the folder is not trusted"}
_LOGGED_OUT = 41
_TURNS_USED_UP = 53


class GeminiParser(RecordParser):
    """Keeps the session, the result, and the last words of the model."""

    def __init__(self, baseline: Tokens | None = None) -> None:
        super().__init__(baseline)
        self._goes_on = False  # whether the next piece belongs to the message so far

    def read(self, kind: str, record: dict[str, object]) -> Iterator[OutputLine]:
        """What a record of this type tells."""
        if kind == "init":
            yield self.opened(record)
        elif kind == "message" and record.get("role") == "assistant":
            self._say(record)
            yield OutputLine("text", one_line(record.get("content")))
        elif kind == "tool_use":
            self._goes_on = False
            yield OutputLine("tool", one_line(record.get("tool_name"), 100))
        elif kind == "error":
            yield OutputLine("error", one_line(record.get("message")))
        elif kind == "result":
            self.result = record
            self.tokens = _tokens(table(record, "stats")) or self.tokens
            yield OutputLine("final", one_line(table(record, "error").get("message")), self.tokens)

    def told(self, kind: str, record: dict[str, object]) -> Iterator[Entry]:
        """What a record of this type says in a transcript; a message comes in pieces."""
        if kind == "init":
            yield begun(record)
        elif kind == "message" and record.get("role") == "assistant":
            if record.get("delta") is True and text(record.get("content")):
                yield Entry("said", text(record.get("content")), joins=True)
            else:
                yield from said(record.get("content"))
        elif kind == "tool_use":
            yield used(record.get("tool_name"), record.get("parameters"))
        elif kind == "tool_result":
            error = table(record, "error").get("message")
            yield resulted(record.get("output") or error or record.get("status"))
        elif kind == "error":
            yield from failed(record.get("message"))
        elif kind == "result":
            succeeded = record.get("status") == "success"
            yield from failed(table(record, "error").get("message"))
            yield turned("ended" if succeeded else "failed", _tokens(table(record, "stats")))

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """What the result says, then what the exit code says."""
        facts = self.facts()
        facts["summary"] = words(self.summary)
        if self.result is not None and self.result.get("status") == "success":
            return Verdict(Outcome.SUCCEEDED, **facts)
        error = table(self.result, "error")
        message = text(error.get("message"))
        if exit_code == _LOGGED_OUT or error.get("type") == "FatalAuthenticationError":
            why = filter(None, (verdicts.ended(exit_code, signal), last_line(stderr_tail)))
            detail = one_line(message or ": ".join(why))
            return Verdict(Outcome.ENVIRONMENT, detail, pause=verdicts.NOT_LOGGED_IN, **facts)
        if self.result is None:
            by_code = verdicts.unfinished(exit_code, signal, stderr_tail, self.begun, **facts)
            if meant := _EXITS.get(exit_code or 0):
                return Verdict(by_code.outcome, f"{by_code.detail} ({meant})", **facts)
            return by_code
        if exit_code == _TURNS_USED_UP:
            return Verdict(Outcome.FAILED, one_line(message) or "turn limit", **facts)
        return _quota(text(error.get("type")), message, now, facts)

    def _say(self, record: Mapping[str, object]) -> None:
        """Join the pieces of one message."""
        piece = text(record.get("content"))
        if record.get("delta") is not True or not self._goes_on:
            self.summary = self.answer = ""
        self._goes_on = True
        self.summary = (self.summary + piece[:4_000])[-8_000:]
        if len(self.answer) <= ANSWER_BYTES:
            self.answer += piece


def _quota(kind: str, message: str, now: Instant, facts: Facts) -> Verdict:
    """Errors of quota have classes of their own: one for a while, one for the day."""
    detail = one_line(message) or kind
    if kind == "RetryableQuotaError":
        return Verdict(Outcome.THROTTLED, detail, retry_after=verdicts.wait_in(message), **facts)
    if kind == "TerminalQuotaError":
        if "credits" in message.lower():
            return Verdict(Outcome.ENVIRONMENT, detail, pause=verdicts.OUT_OF_CREDITS, **facts)
        wait = verdicts.wait_in(message)
        resets_at = now + wait if wait is not None else verdicts.reset_in(message, now)
        return Verdict(Outcome.THROTTLED, detail, resets_at=resets_at, **facts)
    return verdicts.by_error(message or kind, now, **facts)


def _tokens(stats: Mapping[str, object]) -> Tokens | None:
    whole, cached = count(stats.get("input_tokens")), count(stats.get("cached"))
    output = max(count(stats.get("output_tokens")), count(stats.get("total_tokens")) - whole)
    record = Tokens(max(0, whole - cached), output, cached, 0)
    return record if any(record) else None


READER = GeminiParser
