"""Codex, `exec --json`: one record a line, the last `turn.completed` or `turn.failed`.

Its usage is that of the whole thread, and its input counts what was cached. A failed turn has
neither usage nor a code: the text of its error is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.agents.contract import Seen, Verdict
from fairlane.agents.records import count, one_line, record, session_id, table, words
from fairlane.agents.verdicts import by_error, unfinished
from fairlane.lifecycle.usage import Tokens
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.instant import Instant

#: Items that are the use of a tool, and the key that says which.
_TOOLS = {
    "command_execution": "command",
    "file_change": "status",
    "mcp_tool_call": "tool",
    "collab_tool_call": "tool",
    "web_search": "query",
}


class CodexParser:
    """Keeps the thread, how its turn ended, and its last words."""

    FINAL = (("type", ("turn.completed", "turn.failed")),)

    def __init__(self, baseline: Tokens | None = None) -> None:
        self.baseline = baseline or Tokens()
        self.begun = False
        self.session: str | None = None
        self.tokens: Tokens | None = None
        self.ended: str | None = None  # the last turn's end
        self.error = ""  # the last error, while nothing has followed it
        self.said = ""

    def line(self, text: str) -> Iterator[Seen]:
        """What a record tells; what is no record is skipped."""
        found = record(text)
        kind = found.get("type") if found else None
        if found is None or not isinstance(kind, str):
            return
        self.begun = True
        if kind == "thread.started":
            self.session = session_id(found.get("thread_id")) or self.session
            yield Seen("session", session=self.session)
        elif kind == "error":
            self.error = _message(found)
            yield Seen("retry", one_line(self.error))
        elif kind.startswith("item."):
            yield from self._item(kind, table(found, "item"))
        elif kind in ("turn.started", "turn.completed", "turn.failed"):
            yield from self._turn(kind, found)

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """How the turn ended; one that did not end was interrupted, or its error says why."""
        held: dict[str, Any] = {
            "tokens": self.tokens,
            "session": self.session,
            "summary": self.said,
        }
        if self.ended == "turn.completed":
            return Verdict(Outcome.SUCCEEDED, **held)
        if self.ended == "turn.failed" or (self.error and exit_code not in (None, 0)):
            return by_error(self.error, now, **held)
        return unfinished(exit_code, signal, stderr_tail, self.begun, **held)

    def _turn(self, kind: str, found: Mapping[str, Any]) -> Iterator[Seen]:
        self.ended = None if kind == "turn.started" else kind
        if kind == "turn.completed":
            self.error = ""
            if table(found, "usage"):
                self.tokens = _since(_totals(table(found, "usage")), self.baseline)
            yield Seen("final", self.said[:300], self.tokens)
        elif kind == "turn.failed":
            self.error = _message(table(found, "error")) or self.error
            yield Seen("final", one_line(self.error))

    def _item(self, kind: str, item: Mapping[str, Any]) -> Iterator[Seen]:
        sort = item.get("type")
        if sort == "error":  # a warning: turns succeed after it
            yield Seen("error", one_line(item.get("message")))
            return
        self.error = ""
        if sort == "agent_message" and kind == "item.completed":
            self.said = words(item.get("text")) or self.said
            yield Seen("text", one_line(item.get("text")))
        elif isinstance(sort, str) and sort in _TOOLS and kind != "item.updated":
            state = "" if kind == "item.started" else f" ({one_line(item.get('status'), 20)})"
            yield Seen("tool", one_line(item.get(_TOOLS[sort]) or sort, 200) + state)


def _message(found: Mapping[str, Any]) -> str:
    """The text of an error, which may be told as a text that is JSON itself."""
    said = words(found.get("message"))
    inner = record(said)
    if inner is None:
        return said
    return words(table(inner, "error").get("message")) or words(inner.get("message")) or said


def _totals(usage: Mapping[str, Any]) -> Tokens:
    """The thread's counters; of the input, what was cached is told apart."""
    cached = count(usage.get("cached_input_tokens"))
    written = count(usage.get("cache_write_input_tokens"))
    fresh = max(0, count(usage.get("input_tokens")) - cached - written)
    return Tokens(fresh, count(usage.get("output_tokens")), cached, written)


def _since(totals: Tokens, baseline: Tokens) -> Tokens:
    """What was used after the baseline; totals below it cannot be those of the same thread."""
    if any(now < before for now, before in zip(totals, baseline, strict=True)):
        return totals
    return Tokens(*(now - before for now, before in zip(totals, baseline, strict=True)))


READER = CodexParser
