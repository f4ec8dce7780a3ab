"""OpenCode, `run --format json`: steps with their tokens and dollars; there is no final record.

The last step that says `stop` ends a success, the last error a failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.agents import verdicts
from fairlane.agents.contract import Facts, OutputLine, Verdict
from fairlane.agents.parsers.base import RecordParser
from fairlane.agents.records import (
    count,
    micro_dollars,
    micros,
    one_line,
    plus,
    table,
    text,
    words,
)
from fairlane.agents.transcript import Entry, failed, resulted, said, turned, used
from fairlane.lifecycle.backoff import WAIT_MAX
from fairlane.model.project import Tokens
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.instant import Instant, Micros


class OpencodeParser(RecordParser):
    """Sums the steps, and keeps the last error while nothing has followed it."""

    FINAL = ()

    def __init__(self, baseline: Tokens | None = None) -> None:
        super().__init__(baseline)
        self.finished = False
        self.error: dict[str, object] | None = None

    def read(self, kind: str, record: dict[str, object]) -> Iterator[OutputLine]:
        """What a record of this type tells; the first of all names the session."""
        if not self.begun:
            yield self.opened(record, "sessionID")
        part = table(record, "part")
        if kind == "text":
            self.summary = words(part.get("text")) or self.summary
            self.answer = text(part.get("text")) or self.answer
            yield OutputLine("text", one_line(part.get("text")))
        elif kind == "tool_use":
            yield OutputLine("tool", one_line(part.get("tool"), 100))
        elif kind == "step_start":
            self.error, self.finished = None, False
        elif kind == "step_finish":
            yield self._stepped(part)
        elif kind == "error":
            self.error = table(record, "error")
            yield OutputLine("error", one_line(_message(self.error)))

    def told(self, kind: str, record: dict[str, object]) -> Iterator[Entry]:
        """What a record of this type says in a transcript; tools are told when they have ended."""
        part = table(record, "part")
        state = table(part, "state")
        if kind == "text":
            yield from said(part.get("text"))
        elif kind == "tool_use":
            yield used(part.get("tool"), state.get("input"))
            yield resulted(state.get("output") or state.get("error"))
        elif kind == "step_finish":
            yield turned("step" if part.get("reason") == "tool-calls" else "ended", _tokens(part))
        elif kind == "error":
            yield from failed(_message(table(record, "error")))

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """A last step that stopped by itself is success, an error after it is not."""
        facts = self.facts()
        if self.error is not None:
            return _by_error(self.error, now, facts)
        if self.finished and exit_code == 0:
            return Verdict(Outcome.SUCCEEDED, **facts)
        return verdicts.unfinished(exit_code, signal, stderr_tail, self.begun, **facts)

    def _stepped(self, part: Mapping[str, object]) -> OutputLine:
        self.finished = part.get("reason") != "tool-calls"
        self.tokens = plus(self.tokens or Tokens(), _tokens(part))
        cost = micro_dollars(part.get("cost"))
        self.usd = self.usd if cost is None else (self.usd or 0) + cost
        return OutputLine("usage", tokens=self.tokens, usd=self.usd)


def _tokens(part: Mapping[str, object]) -> Tokens:
    """What a step has used."""
    tokens, cache = table(part, "tokens"), table(part, "tokens", "cache")
    return Tokens(
        count(tokens.get("input")),
        count(tokens.get("output")) + count(tokens.get("reasoning")),
        count(cache.get("read")),
        count(cache.get("write")),
    )


def _by_error(error: Mapping[str, object], now: Instant, facts: Facts) -> Verdict:
    message, status = _message(error), count(table(error, "data").get("statusCode"))
    detail = one_line(message)
    if status == 401 or error.get("name") == "ProviderAuthError":
        return Verdict(Outcome.ENVIRONMENT, detail, pause=verdicts.NOT_LOGGED_IN, **facts)
    if status == 402:
        return Verdict(Outcome.ENVIRONMENT, detail, pause=verdicts.OUT_OF_CREDITS, **facts)
    verdict = verdicts.by_error(message, now, **facts)
    if status in (429, 529) and not verdict.pause:
        resets_at = verdict.resets_at or verdicts.reset_in(message, now)
        wait = None if resets_at else _retry_after(error) or verdicts.wait_in(message)
        return Verdict(Outcome.THROTTLED, detail, retry_after=wait, resets_at=resets_at, **facts)
    return verdict


def _message(error: Mapping[str, object]) -> str:
    return text(table(error, "data").get("message")) or text(error.get("name")) or "error"


def _retry_after(error: Mapping[str, object]) -> Micros | None:
    """The wait that the provider's answer asked for in a header."""
    headers = {
        str(name).lower(): value for name, value in table(error, "data", "responseHeaders").items()
    }
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        try:
            wait = micros(float(text(headers.get(name))) / unit)
        except ValueError:
            continue
        if wait is not None:
            return min(wait, WAIT_MAX)
    return None


READER = OpencodeParser
