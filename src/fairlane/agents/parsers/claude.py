"""Claude Code, `--output-format stream-json`: one record a line, the last of type `result`.

`subtype` alone says nothing: a run that the provider refused ends with `success` and `is_error`.
Usage is that of `modelUsage`, which counts subagents too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.agents import verdicts
from fairlane.agents.contract import Facts, OutputLine, Verdict
from fairlane.agents.parsers.base import RecordParser, begun
from fairlane.agents.records import (
    count,
    micro_dollars,
    micros,
    one_line,
    plus,
    table,
    text,
    whole_text,
    words,
)
from fairlane.agents.transcript import Entry, failed, resulted, said, turned, used
from fairlane.model.project import Tokens
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.instant import Instant, Micros

_LOGGED_OUT = frozenset({"authentication_failed", "oauth_org_not_allowed"})
_THROTTLED = frozenset({"rate_limit", "overloaded"})
_STATUSES = frozenset({429, 529})
#: Distinct answers whose usage is remembered; beyond, live totals do not grow.
_MESSAGES_MAX = 100_000
#: The model of an answer that the program itself has made: it says what went wrong.
_SYNTHETIC = "<synthetic>"


class ClaudeParser(RecordParser):
    """Keeps what the verdict needs: the result, limits, errors, usage of each answer."""

    def __init__(self, baseline: Tokens | None = None) -> None:
        super().__init__(baseline)
        self.answers: dict[str, Tokens] = {}
        self.sum = Tokens()
        self.error = ""  # of the last answer of the main thread
        self.limit: dict[str, object] = {}  # the last word on a window
        self.delay: Micros | None = None  # before the last try again after a throttle

    def read(self, kind: str, record: dict[str, object]) -> Iterator[OutputLine]:
        """What a record of this type tells."""
        readers = {
            "system": self._system,
            "assistant": self._assistant,
            "rate_limit_event": self._limited,
            "result": self._resulted,
        }
        return readers[kind](record) if kind in readers else iter(())

    def told(self, kind: str, record: dict[str, object]) -> Iterator[Entry]:
        """What a record of this type says in a transcript."""
        readers = {
            "system": _noticed,
            "assistant": _said,
            "user": _answered,
            "rate_limit_event": _refused,
            "result": _turned,
        }
        return readers[kind](record) if kind in readers else iter(())

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """What the result says; without one the attempt did not end well."""
        facts = self.facts()
        facts["tokens"] = self.tokens or (self.sum if self.answers else None)
        facts["summary"] = words(table(self.result).get("result")) or self.summary
        if self.result is None:
            if self._rejected():
                detail = f"{self.limit.get('rateLimitType') or 'usage'} limit reached"
                return self._throttled(one_line(detail), "", now, facts)
            return verdicts.unfinished(exit_code, signal, stderr_tail, self.begun, **facts)
        if self.result.get("is_error") is not True and self.result.get("subtype") == "success":
            facts["answer"] = whole_text(self.result.get("result")) or facts["answer"]
            return Verdict(Outcome.SUCCEEDED, _denied(self.result), **facts)
        return self._failed(self.result, now, facts)

    def _failed(self, result: Mapping[str, object], now: Instant, facts: Facts) -> Verdict:
        why = _error_text(result)
        detail, status = one_line(why), count(result.get("api_error_status"))
        if self.error in _LOGGED_OUT or status == 401:
            return Verdict(Outcome.ENVIRONMENT, detail, pause=verdicts.NOT_LOGGED_IN, **facts)
        if self.error == "billing_error" or self.limit.get("errorCode") == "credits_required":
            return Verdict(Outcome.ENVIRONMENT, detail, pause=verdicts.OUT_OF_CREDITS, **facts)
        if result.get("subtype") != "success":
            return Verdict(Outcome.FAILED, detail, **facts)
        verdict = verdicts.by_error(why, now, **facts)
        if verdict.pause:
            return verdict
        refused = status in _STATUSES or self.error in _THROTTLED or self._rejected()
        if refused or verdict.outcome is Outcome.THROTTLED:
            return self._throttled(detail, why, now, facts)
        return verdict

    def _throttled(self, detail: str, why: str, now: Instant, facts: Facts) -> Verdict:
        """Retry at the window's end, else when the text says, else after the last delay."""
        resets_at = None
        if self._rejected():
            resets_at = verdicts.epoch_instant(self.limit.get("resetsAt"), now)
        resets_at = resets_at or verdicts.reset_in(why, now)
        wait = None if resets_at else self.delay
        return Verdict(Outcome.THROTTLED, detail, retry_after=wait, resets_at=resets_at, **facts)

    def _rejected(self) -> bool:
        return self.limit.get("status") == "rejected"

    def _system(self, record: Mapping[str, object]) -> Iterator[OutputLine]:
        if record.get("subtype") == "init":
            yield self.opened(record)
        elif record.get("subtype") == "api_retry":
            delay = micros(count(record.get("retry_delay_ms")) / 1_000)
            status, error = count(record.get("error_status")), text(record.get("error"))
            if status in _STATUSES or error in _THROTTLED:
                self.delay = delay
            yield OutputLine("retry", _again(record))

    def _assistant(self, record: Mapping[str, object]) -> Iterator[OutputLine]:
        message = table(record, "message")
        main = record.get("parent_tool_use_id") is None
        if main:
            self.error = one_line(record.get("error"), 60)
        for block in _blocks(record):
            yield from self._block(block, main)
        if main and message.get("model") != _SYNTHETIC:
            texts = [text(block.get("text")) for block in _blocks(record, "text")]
            self.answer = next(filter(None, reversed(texts)), self.answer)
        if self._count(message):
            yield OutputLine("usage", tokens=self.sum)

    def _block(self, block: Mapping[str, object], main: bool) -> Iterator[OutputLine]:
        if block.get("type") == "text":
            self.summary = (words(block.get("text")) or self.summary) if main else self.summary
            yield OutputLine("text", one_line(block.get("text")))
        elif block.get("type") == "tool_use":
            yield OutputLine("tool", one_line(block.get("name"), 100))

    def _count(self, message: Mapping[str, object]) -> bool:
        """Book the usage of an answer once; its output is only a guess until the result."""
        usage, name = table(message, "usage"), text(message.get("id"))
        if not usage or not name or name in self.answers or len(self.answers) >= _MESSAGES_MAX:
            return False
        if message.get("model") == _SYNTHETIC:
            return False
        self.answers[name] = _tokens(usage, _SNAKE)
        self.sum = plus(self.sum, self.answers[name])
        return True

    def _limited(self, record: Mapping[str, object]) -> Iterator[OutputLine]:
        self.limit = table(record, "rate_limit_info")
        shown = (self.limit.get("rateLimitType"), self.limit.get("status"))
        yield OutputLine("limit", " ".join(one_line(part, 40) for part in shown).strip())

    def _resulted(self, record: dict[str, object]) -> Iterator[OutputLine]:
        """A later result counts, unless it only follows up what ran in the background."""
        follows_up = table(record, "origin").get("kind") == "task-notification"
        if self.result is None or not follows_up:
            self.result = record
        used = _of_models(table(record, "modelUsage")) or _tokens(table(record, "usage"), _SNAKE)
        if any(used):
            self.tokens = used
        usd = micro_dollars(record.get("total_cost_usd"))
        self.usd = usd if usd is not None and (usd or self.usd is None) else self.usd
        yield OutputLine("final", one_line(_error_text(record)), self.tokens, self.usd)


_SNAKE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_CAMEL = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


def _tokens(usage: Mapping[str, object], names: tuple[str, str, str, str]) -> Tokens:
    return Tokens(*(count(usage.get(name)) for name in names))


def _of_models(models: Mapping[str, object]) -> Tokens | None:
    """The usage of all models together; None: it says nothing."""
    total = Tokens()
    for usage in models.values():
        total = plus(total, _tokens(table(usage), _CAMEL))
    return total if any(total) else None


def _blocks(record: Mapping[str, object], kind: str = "") -> list[dict[str, object]]:
    """The parts of a message, of one type if it is named."""
    content = table(record, "message").get("content")
    blocks = [table(block) for block in content] if isinstance(content, list) else []
    return [block for block in blocks if kind in ("", block.get("type"))]


def _again(record: Mapping[str, object]) -> str:
    """Why and when a call is made again."""
    delay = micros(count(record.get("retry_delay_ms")) / 1_000)
    why = one_line(record.get("error"), 60) or "error"
    return f"{why}, again in {(delay or 0) / 1_000_000:g} s"


def _noticed(record: Mapping[str, object]) -> Iterator[Entry]:
    if record.get("subtype") == "init":
        yield begun(record)
    elif record.get("subtype") == "api_retry":
        yield from failed(_again(record))


def _said(record: Mapping[str, object]) -> Iterator[Entry]:
    speaks = failed if table(record, "message").get("model") == _SYNTHETIC else said
    for block in _blocks(record):
        kind = text(block.get("type"))
        if kind == "text":
            yield from speaks(block.get("text"))
        elif kind.endswith("tool_use"):
            yield used(block.get("name"), block.get("input"))
        elif kind.endswith("tool_result"):
            yield resulted(block.get("content"))


def _answered(record: Mapping[str, object]) -> Iterator[Entry]:
    """What tools gave; the program tells it as words of the user."""
    for block in _blocks(record, "tool_result"):
        yield resulted(block.get("content"))


def _refused(record: Mapping[str, object]) -> Iterator[Entry]:
    limit = table(record, "rate_limit_info")
    if limit.get("status") == "rejected":
        yield from failed(f"{one_line(limit.get('rateLimitType'), 40) or 'usage'} limit reached")


def _turned(record: Mapping[str, object]) -> Iterator[Entry]:
    models = _of_models(table(record, "modelUsage"))
    tokens = models or _tokens(table(record, "usage"), _SNAKE)
    failing = record.get("is_error") is True or record.get("subtype") != "success"
    if failing and record.get("subtype") != "success":  # else a message has said it
        yield from failed(_error_text(record))
    yield turned("failed" if failing else "ended", tokens if any(tokens) else None)


def _denied(result: Mapping[str, object]) -> str:
    """Which tools it was not allowed to use: nobody was there to ask."""
    denials = result.get("permission_denials")
    if not isinstance(denials, list) or not denials:
        return ""
    tools = sorted({one_line(table(denial).get("tool_name"), 40) or "?" for denial in denials})
    return one_line(f"refused by permissions ({len(denials)}): {', '.join(tools)}")


def _error_text(result: Mapping[str, object]) -> str:
    """What a result says in words: its text, else its errors, else its subtype."""
    errors = result.get("errors")
    listed = [text(error) for error in errors] if isinstance(errors, list) else []
    subtype = text(result.get("subtype"))
    message = text(result.get("result")) or "; ".join(error for error in listed if error)
    if subtype in ("", "success"):
        return message
    return f"{subtype}: {message}" if message else subtype


READER = ClaudeParser
