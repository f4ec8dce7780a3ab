"""Gemini CLI, `-o stream-json`: one record a line, the last of type `result` with its stats.

The total of its tokens holds what the model thought; the rest of it beside the input is output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.agents.contract import Seen, Verdict
from fairlane.agents.records import count, one_line, record, session_id, table, text, words
from fairlane.agents.verdicts import NOT_LOGGED_IN, OUT_OF_CREDITS, by_error, unfinished
from fairlane.agents.waits import reset_in, wait_in
from fairlane.lifecycle.usage import Tokens
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.instant import Instant

#: What its exit codes mean, where they say more than that it failed.
_EXITS = {42: "bad input", 44: "no sandbox", 52: "bad settings", 55: "the folder is not trusted"}
_LOGGED_OUT = 41
_TURNS_USED_UP = 53


class GeminiParser:
    """Keeps the session, the result, and the last words of the model."""

    FINAL = (("type", ("result",)),)

    def __init__(self, baseline: Tokens | None = None) -> None:
        self.begun = False
        self.session: str | None = None
        self.model: str | None = None
        self.result: dict[str, Any] | None = None
        self.tokens: Tokens | None = None
        self.said = ""

    def line(self, text: str) -> Iterator[Seen]:
        """What a record tells; what is no record is skipped."""
        found = record(text)
        if found is None:
            return
        self.begun = True
        kind = found.get("type")
        if kind == "init":
            self.session = session_id(found.get("session_id")) or self.session
            self.model = one_line(found.get("model"), 100) or self.model
            yield Seen("session", self.model or "", session=self.session)
        elif kind == "message" and found.get("role") == "assistant":
            self._say(found)
            yield Seen("text", one_line(found.get("content")))
        elif kind == "tool_use":
            yield Seen("tool", one_line(found.get("tool_name"), 100))
        elif kind == "error":
            yield Seen("error", one_line(found.get("message")))
        elif kind == "result":
            self.result = found
            self.tokens = _tokens(table(found, "stats")) or self.tokens
            yield Seen("final", one_line(table(found, "error").get("message")), self.tokens)

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """What the result says, then what the exit code says."""
        held: dict[str, Any] = {"tokens": self.tokens, "session": self.session}
        held |= {"model": self.model, "summary": words(self.said)}
        if self.result is not None and self.result.get("status") == "success":
            return Verdict(Outcome.SUCCEEDED, **held)
        error = table(self.result, "error")
        message = text(error.get("message"))
        if exit_code == _LOGGED_OUT or error.get("type") == "FatalAuthenticationError":
            detail = one_line(message) or "exit 41"
            return Verdict(Outcome.ENVIRONMENT, detail, pause=NOT_LOGGED_IN, **held)
        if self.result is None:
            told = unfinished(exit_code, signal, stderr_tail, self.begun, **held)
            meant = _EXITS.get(exit_code or 0)
            return Verdict(told.outcome, f"{told.detail} ({meant})", **held) if meant else told
        if exit_code == _TURNS_USED_UP:
            return Verdict(Outcome.FAILED, one_line(message) or "turn limit", **held)
        return _quota(text(error.get("type")), message, now, held)

    def _say(self, found: Mapping[str, Any]) -> None:
        """Pieces of one message are told one after another."""
        piece = text(found.get("content"))[:4_000]
        self.said = (self.said + piece)[-8_000:] if found.get("delta") is True else piece


def _quota(sort: str, message: str, now: Instant, held: dict[str, Any]) -> Verdict:
    """Errors of quota have classes of their own: one for a while, one for the day."""
    detail = one_line(message) or sort
    if sort == "RetryableQuotaError":
        return Verdict(Outcome.THROTTLED, detail, retry_after=wait_in(message), **held)
    if sort == "TerminalQuotaError":
        if "credits" in message.lower():
            return Verdict(Outcome.ENVIRONMENT, detail, pause=OUT_OF_CREDITS, **held)
        wait = wait_in(message)
        resets_at = now + wait if wait is not None else reset_in(message, now)
        return Verdict(Outcome.THROTTLED, detail, resets_at=resets_at, **held)
    return by_error(message or sort, now, **held)


def _tokens(stats: Mapping[str, Any]) -> Tokens | None:
    whole, cached = count(stats.get("input_tokens")), count(stats.get("cached"))
    output = max(count(stats.get("output_tokens")), count(stats.get("total_tokens")) - whole)
    found = Tokens(max(0, whole - cached), output, cached, 0)
    return found if any(found) else None


READER = GeminiParser
