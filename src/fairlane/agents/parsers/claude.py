"""Claude Code, `--output-format stream-json`: one record a line, the last of type `result`.

`subtype` alone says nothing: a run that the provider refused ends with `success` and `is_error`.
Usage is that of `modelUsage`, which counts subagents too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.agents.contract import Seen, Verdict
from fairlane.agents.records import (
    count,
    micro_dollars,
    micros,
    one_line,
    plus,
    record,
    session_id,
    table,
    text,
    words,
)
from fairlane.agents.verdicts import NOT_LOGGED_IN, OUT_OF_CREDITS, by_error, unfinished
from fairlane.agents.waits import bounded, epoch_instant, reset_in
from fairlane.lifecycle.usage import Tokens
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fairlane.model.instant import Instant, Micros

_LOGGED_OUT = frozenset({"authentication_failed", "oauth_org_not_allowed"})
_THROTTLED = frozenset({"rate_limit", "overloaded"})
_STATUSES = frozenset({429, 529})
#: Distinct answers whose usage is remembered; beyond, live totals stand still.
_MESSAGES_MAX = 100_000


class ClaudeParser:
    """Keeps what the verdict needs: the result, limits, errors, usage of each answer."""

    FINAL = (("type", ("result",)),)

    def __init__(self, baseline: Tokens | None = None) -> None:
        self.begun = False
        self.session: str | None = None
        self.model: str | None = None
        self.result: dict[str, Any] | None = None
        self.counted: Tokens | None = None
        self.usd: int | None = None
        self.answers: dict[str, Tokens] = {}
        self.sum = Tokens()
        self.error = ""  # of the last answer of the main thread
        self.limit: dict[str, Any] = {}  # the last word on a window
        self.delay: Micros | None = None  # before the last try again after a throttle
        self.said = ""

    def line(self, text: str) -> Iterator[Seen]:
        """What a record tells; what is no record is skipped."""
        found = record(text)
        if found is None:
            return
        self.begun = True
        read = _READ.get(found.get("type") or "") if isinstance(found.get("type"), str) else None
        if read is not None:
            yield from read(self, found)

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """What the result says; without one the attempt did not end well."""
        held: dict[str, Any] = {"session": self.session, "model": self.model, "usd": self.usd}
        held |= {"tokens": self.counted or (self.sum if self.answers else None)}
        held["summary"] = words(table(self.result).get("result")) or self.said
        if self.result is None:
            if self._rejected():
                detail = f"{self.limit.get('rateLimitType') or 'usage'} limit reached"
                return Verdict(Outcome.THROTTLED, one_line(detail), **held, **self._until("", now))
            return unfinished(exit_code, signal, stderr_tail, self.begun, **held)
        if self.result.get("is_error") is not True and self.result.get("subtype") == "success":
            return Verdict(Outcome.SUCCEEDED, _denied(self.result), **held)
        return self._failed(self.result, now, held)

    def _failed(self, result: Mapping[str, Any], now: Instant, held: dict[str, Any]) -> Verdict:
        why = _error_text(result)
        detail, status = one_line(why), count(result.get("api_error_status"))
        if self.error in _LOGGED_OUT or status == 401:
            return Verdict(Outcome.ENVIRONMENT, detail, pause=NOT_LOGGED_IN, **held)
        if self.error == "billing_error" or self.limit.get("errorCode") == "credits_required":
            return Verdict(Outcome.ENVIRONMENT, detail, pause=OUT_OF_CREDITS, **held)
        if result.get("subtype") != "success":
            return Verdict(Outcome.FAILED, detail, **held)
        verdict = by_error(why, now, **held)
        if verdict.pause:
            return verdict
        refused = status in _STATUSES or self.error in _THROTTLED or self._rejected()
        if refused or verdict.outcome is Outcome.THROTTLED:
            return Verdict(Outcome.THROTTLED, detail, **held, **self._until(why, now))
        return verdict

    def _until(self, why: str, now: Instant) -> dict[str, Any]:
        """When to come again: the window's end, else what the text says, else the last delay."""
        if self._rejected():
            resets_at = bounded(epoch_instant(self.limit.get("resetsAt")), now)
            if resets_at is not None:
                return {"resets_at": resets_at}
        resets_at = reset_in(why, now)
        return {"resets_at": resets_at} if resets_at else {"retry_after": self.delay}

    def _rejected(self) -> bool:
        return self.limit.get("status") == "rejected"

    def _system(self, found: Mapping[str, Any]) -> Iterator[Seen]:
        if found.get("subtype") == "init":
            self.session = session_id(found.get("session_id")) or self.session
            self.model = one_line(found.get("model"), 100) or self.model
            yield Seen("session", self.model or "", session=self.session)
        elif found.get("subtype") == "api_retry":
            delay = micros(count(found.get("retry_delay_ms")) / 1_000)
            if found.get("error_status") in _STATUSES or found.get("error") in _THROTTLED:
                self.delay = delay
            why = one_line(found.get("error"), 60) or "error"
            yield Seen("retry", f"{why}, again in {(delay or 0) / 1_000_000:g} s")

    def _assistant(self, found: Mapping[str, Any]) -> Iterator[Seen]:
        message = table(found, "message")
        main = found.get("parent_tool_use_id") is None
        if main:
            self.error = one_line(found.get("error"), 60)
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            yield from self._block(table(block), main)
        if self._count(message):
            yield Seen("usage", tokens=self.sum)

    def _block(self, block: Mapping[str, Any], main: bool) -> Iterator[Seen]:
        if block.get("type") == "text":
            self.said = (words(block.get("text")) or self.said) if main else self.said
            yield Seen("text", one_line(block.get("text")))
        elif block.get("type") == "tool_use":
            yield Seen("tool", one_line(block.get("name"), 100))

    def _count(self, message: Mapping[str, Any]) -> bool:
        """Book the usage of an answer once; its output is only a guess until the result."""
        usage, name = table(message, "usage"), text(message.get("id"))
        if not usage or not name or name in self.answers or len(self.answers) >= _MESSAGES_MAX:
            return False
        if message.get("model") == "<synthetic>":
            return False
        self.answers[name] = _tokens(usage, _SNAKE)
        self.sum = plus(self.sum, self.answers[name])
        return True

    def _limited(self, found: Mapping[str, Any]) -> Iterator[Seen]:
        self.limit = table(found, "rate_limit_info")
        shown = (self.limit.get("rateLimitType"), self.limit.get("status"))
        yield Seen("limit", " ".join(one_line(part, 40) for part in shown).strip())

    def _resulted(self, found: dict[str, Any]) -> Iterator[Seen]:
        """A later result counts, unless it only follows up what ran in the background."""
        follows_up = table(found, "origin").get("kind") == "task-notification"
        if self.result is None or not follows_up:
            self.result = found
        used = _of_models(table(found, "modelUsage")) or _tokens(table(found, "usage"), _SNAKE)
        if any(used):
            self.counted = used
        usd = micro_dollars(found.get("total_cost_usd"))
        self.usd = usd if usd is not None and (usd or self.usd is None) else self.usd
        yield Seen("final", one_line(_error_text(found)), self.counted, self.usd)


_READ: dict[str, Callable[[ClaudeParser, dict[str, Any]], Iterator[Seen]]] = {
    "system": ClaudeParser._system,
    "assistant": ClaudeParser._assistant,
    "rate_limit_event": ClaudeParser._limited,
    "result": ClaudeParser._resulted,
}
_SNAKE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_CAMEL = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


def _tokens(usage: Mapping[str, Any], names: tuple[str, str, str, str]) -> Tokens:
    return Tokens(*(count(usage.get(name)) for name in names))


def _of_models(models: Mapping[str, Any]) -> Tokens | None:
    """The usage of all models together; None: it says nothing."""
    total = Tokens()
    for usage in models.values():
        total = plus(total, _tokens(table(usage), _CAMEL))
    return total if any(total) else None


def _denied(result: Mapping[str, Any]) -> str:
    """Which tools it was not allowed to use: nobody was there to ask."""
    denials = result.get("permission_denials")
    if not isinstance(denials, list) or not denials:
        return ""
    tools = sorted({one_line(table(each).get("tool_name"), 40) or "?" for each in denials})
    return one_line(f"refused by permissions ({len(denials)}): {', '.join(tools)}")


def _error_text(result: Mapping[str, Any]) -> str:
    """What a result says in words: its text, else its errors, else its subtype."""
    errors = result.get("errors")
    listed = [text(each) for each in errors] if isinstance(errors, list) else []
    subtype = text(result.get("subtype"))
    said = text(result.get("result")) or "; ".join(each for each in listed if each)
    if subtype in ("", "success"):
        return said
    return f"{subtype}: {said}" if said else subtype


READER = ClaudeParser
