"""Codex, `exec --json`: one record a line, the last `turn.completed` or `turn.failed`.

Its usage is that of the whole thread, and its input counts what was cached. A failed turn has
neither usage nor a code: the text of its error is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.agents.contract import OutputLine, Verdict
from fairlane.agents.parsers.base import RecordParser
from fairlane.agents.records import count, one_line, parse_record, session_id, table, words
from fairlane.agents.verdicts import by_error, unfinished
from fairlane.model.project import Tokens
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


class CodexParser(RecordParser):
    """Keeps the thread, how its turn ended, and its last words."""

    FINAL = (("type", ("turn.completed", "turn.failed")),)

    def __init__(self, baseline: Tokens | None = None) -> None:
        super().__init__(baseline)
        self.ended: str | None = None  # the last turn's end
        self.error = ""  # the last error, while nothing has followed it

    def line(self, line: str) -> Iterator[OutputLine]:
        """What a record tells; what is no record is skipped."""
        record = parse_record(line)
        kind = record.get("type") if record else None
        if record is None or not isinstance(kind, str):
            return
        self.begun = True
        if kind == "thread.started":
            self.session = session_id(record.get("thread_id")) or self.session
            yield OutputLine("session", session=self.session)
        elif kind == "error":
            self.error = _message(record)
            yield OutputLine("retry", one_line(self.error))
        elif kind.startswith("item."):
            yield from self._item(kind, table(record, "item"))
        elif kind in ("turn.started", "turn.completed", "turn.failed"):
            yield from self._turn(kind, record)

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """How the turn ended; one that did not end was interrupted, or its error says why."""
        facts = self.facts()
        if self.ended == "turn.completed":
            return Verdict(Outcome.SUCCEEDED, **facts)
        if self.ended == "turn.failed" or (self.error and exit_code not in (None, 0)):
            return by_error(self.error, now, **facts)
        return unfinished(exit_code, signal, stderr_tail, self.begun, **facts)

    def _turn(self, kind: str, record: Mapping[str, object]) -> Iterator[OutputLine]:
        self.ended = None if kind == "turn.started" else kind
        if kind == "turn.completed":
            self.error = ""
            if table(record, "usage"):
                self.tokens = _since(_totals(table(record, "usage")), self.baseline)
            yield OutputLine("final", self.summary[:300], self.tokens)
        elif kind == "turn.failed":
            self.error = _message(table(record, "error")) or self.error
            yield OutputLine("final", one_line(self.error))

    def _item(self, kind: str, item: Mapping[str, object]) -> Iterator[OutputLine]:
        item_type = item.get("type")
        if item_type == "error":  # a warning: turns succeed after it
            yield OutputLine("error", one_line(item.get("message")))
            return
        self.error = ""
        if item_type == "agent_message" and kind == "item.completed":
            self.summary = words(item.get("text")) or self.summary
            yield OutputLine("text", one_line(item.get("text")))
        elif isinstance(item_type, str) and item_type in _TOOLS and kind != "item.updated":
            state = "" if kind == "item.started" else f" ({one_line(item.get('status'), 20)})"
            yield OutputLine(
                "tool", one_line(item.get(_TOOLS[item_type]) or item_type, 200) + state
            )


def _message(record: Mapping[str, object]) -> str:
    """The text of an error, which may be told as a text that is JSON itself."""
    message = words(record.get("message"))
    inner = parse_record(message)
    if inner is None:
        return message
    return words(table(inner, "error").get("message")) or words(inner.get("message")) or message


def _totals(usage: Mapping[str, object]) -> Tokens:
    """The thread's counters; cached input is counted apart."""
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
