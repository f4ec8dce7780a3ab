"""Codex, `exec --json`: one record a line, the last `turn.completed` or `turn.failed`.

Its usage is that of the whole thread, and its input counts what was cached. A failed turn has
neither usage nor a code: the text of its error is all there is.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from fairlane.agents.contract import OutputLine, Verdict
from fairlane.agents.parsers.base import RecordParser
from fairlane.agents.records import count, one_line, parse_record, session_id, table, text, words
from fairlane.agents.transcript import Entry, failed, resulted, said, turned, used
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

    def told(self, kind: str, record: dict[str, object]) -> Iterator[Entry]:
        """What a record of this type says in a transcript."""
        item = table(record, "item")
        if kind == "turn.started":
            yield turned("started")
        elif kind == "turn.completed":
            usage = table(record, "usage")
            yield turned("ended", _since(_totals(usage), self.baseline) if usage else None)
        elif kind == "turn.failed":
            yield from failed(_message(table(record, "error")))
            yield turned("failed")
        elif kind == "error":
            yield from failed(_message(record))
        elif kind.startswith("item."):
            yield from _TOLD.get(text(item.get("type")), _untold)(kind, item)

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
            self.answer = text(item.get("text")) or self.answer
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


def _commanded(kind: str, item: Mapping[str, object]) -> Iterator[Entry]:
    if kind == "item.started":
        yield used("shell", _unwrapped(text(item.get("command"))))
    elif kind == "item.completed":
        code = item.get("exit_code")
        note = f"\nexit {code}" if isinstance(code, int) and code else ""
        yield resulted(text(item.get("aggregated_output")).rstrip() + note)


def _unwrapped(command: str) -> str:
    """The command that a shell was given as its only argument."""
    try:
        words = shlex.split(command[:_COMMAND_MAX])
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else command


def _called(kind: str, item: Mapping[str, object]) -> Iterator[Entry]:
    name = ".".join(filter(None, (text(item.get("server")), text(item.get("tool")))))
    if kind == "item.started":
        yield used(name, item.get("arguments") or item.get("prompt"))
    elif kind == "item.completed":
        yield resulted(text(table(item, "error").get("message")) or item.get("result"))


def _changed(kind: str, item: Mapping[str, object]) -> Iterator[Entry]:
    changes = item.get("changes")
    if kind == "item.completed":
        listed = [table(change) for change in changes] if isinstance(changes, list) else []
        named = [f"{text(each.get('kind'))} {text(each.get('path'))}".strip() for each in listed]
        yield used("file_change", ", ".join(named))
        if item.get("status") == "failed":
            yield resulted("failed")


def _searched(kind: str, item: Mapping[str, object]) -> Iterator[Entry]:
    if kind == "item.completed":
        yield used("web_search", item.get("query"))


def _listed(kind: str, item: Mapping[str, object]) -> Iterator[Entry]:
    items = item.get("items")
    steps = [table(step) for step in items] if isinstance(items, list) else []
    if kind != "item.completed":  # that repeats it at the end of the turn
        open_steps = [text(step.get("text")) for step in steps if step.get("completed") is not True]
        done = f"{len(steps) - len(open_steps)} of {len(steps)} done"
        yield used("todo_list", f"{done}: {open_steps[0]}" if open_steps else done)


def _spoken(kind: str, item: Mapping[str, object]) -> Iterator[Entry]:
    if kind == "item.completed":
        yield from said(item.get("text"))


def _warned(kind: str, item: Mapping[str, object]) -> Iterator[Entry]:
    if kind == "item.completed":
        yield from failed(item.get("message"))


def _untold(kind: str, item: Mapping[str, object]) -> Iterator[Entry]:
    return iter(())


_COMMAND_MAX = 100_000
#: Type of an item -> what a transcript tells of it.
_TOLD = {
    "agent_message": _spoken,
    "collab_tool_call": _called,
    "command_execution": _commanded,
    "error": _warned,
    "file_change": _changed,
    "mcp_tool_call": _called,
    "todo_list": _listed,
    "web_search": _searched,
}

READER = CodexParser
