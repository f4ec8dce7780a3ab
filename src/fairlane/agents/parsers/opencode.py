"""OpenCode, `run --format json`: steps with their tokens and dollars; there is no final record.

The last step that says `stop` ends a success, the last error a failure.
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
from fairlane.agents.waits import reset_in, wait_in
from fairlane.lifecycle.cooldown import WAIT_MAX
from fairlane.lifecycle.usage import Tokens
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fairlane.agents.contract import FinalRecord
    from fairlane.model.instant import Instant, Micros


class OpencodeParser:
    """Sums the steps, and keeps the last error while nothing has followed it."""

    FINAL: tuple[FinalRecord, ...] = ()

    def __init__(self, baseline: Tokens | None = None) -> None:
        self.begun = False
        self.finished = False
        self.session: str | None = None
        self.tokens: Tokens | None = None
        self.usd: int | None = None
        self.error: dict[str, Any] | None = None
        self.said = ""

    def line(self, text: str) -> Iterator[Seen]:
        """What a record tells; what is no record is skipped."""
        found = record(text)
        if found is None:
            return
        if not self.begun:
            self.session = session_id(found.get("sessionID"))
            yield Seen("session", session=self.session)
        self.begun = True
        kind = found.get("type")
        read = _READ.get(kind) if isinstance(kind, str) else None
        if read is not None:
            yield from read(self, found)

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """A last step that stopped by itself is success, an error after it is not."""
        held: dict[str, Any] = {"tokens": self.tokens, "usd": self.usd, "session": self.session}
        held["summary"] = self.said
        if self.error is not None:
            return _by_error(self.error, now, held)
        if self.finished and exit_code == 0:
            return Verdict(Outcome.SUCCEEDED, **held)
        return unfinished(exit_code, signal, stderr_tail, self.begun, **held)

    def _text(self, found: Mapping[str, Any]) -> Iterator[Seen]:
        said = table(found, "part").get("text")
        self.said = words(said) or self.said
        yield Seen("text", one_line(said))

    def _tool(self, found: Mapping[str, Any]) -> Iterator[Seen]:
        yield Seen("tool", one_line(table(found, "part").get("tool"), 100))

    def _step(self, found: Mapping[str, Any]) -> Iterator[Seen]:
        self.error, self.finished = None, False
        yield from ()

    def _stepped(self, found: Mapping[str, Any]) -> Iterator[Seen]:
        part = table(found, "part")
        self.finished = part.get("reason") != "tool-calls"
        used, cache = table(part, "tokens"), table(part, "tokens", "cache")
        step = Tokens(
            count(used.get("input")),
            count(used.get("output")) + count(used.get("reasoning")),
            count(cache.get("read")),
            count(cache.get("write")),
        )
        self.tokens = plus(self.tokens or Tokens(), step)
        cost = micro_dollars(part.get("cost"))
        self.usd = self.usd if cost is None else (self.usd or 0) + cost
        yield Seen("usage", tokens=self.tokens, usd=self.usd)

    def _erred(self, found: Mapping[str, Any]) -> Iterator[Seen]:
        self.error = table(found, "error")
        yield Seen("error", one_line(_message(self.error)))


_READ: dict[str, Callable[[OpencodeParser, dict[str, Any]], Iterator[Seen]]] = {
    "text": OpencodeParser._text,
    "tool_use": OpencodeParser._tool,
    "step_start": OpencodeParser._step,
    "step_finish": OpencodeParser._stepped,
    "error": OpencodeParser._erred,
}


def _by_error(error: Mapping[str, Any], now: Instant, held: dict[str, Any]) -> Verdict:
    message, status = _message(error), count(table(error, "data").get("statusCode"))
    detail = one_line(message)
    if status == 401 or error.get("name") == "ProviderAuthError":
        return Verdict(Outcome.ENVIRONMENT, detail, pause=NOT_LOGGED_IN, **held)
    if status == 402:
        return Verdict(Outcome.ENVIRONMENT, detail, pause=OUT_OF_CREDITS, **held)
    verdict = by_error(message, now, **held)
    if status in (429, 529) and not verdict.pause:
        resets_at = verdict.resets_at or reset_in(message, now)
        wait = None if resets_at else _retry_after(error) or wait_in(message)
        return Verdict(Outcome.THROTTLED, detail, retry_after=wait, resets_at=resets_at, **held)
    return verdict


def _message(error: Mapping[str, Any]) -> str:
    return text(table(error, "data").get("message")) or text(error.get("name")) or "error"


def _retry_after(error: Mapping[str, Any]) -> Micros | None:
    """The wait that the provider's answer asked for in a header."""
    headers = {str(name).lower(): value for name, value in _headers(error).items()}
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        try:
            wait = micros(float(text(headers.get(name))) / unit)
        except ValueError:
            continue
        if wait is not None:
            return min(wait, WAIT_MAX)
    return None


def _headers(error: Mapping[str, Any]) -> Mapping[str, Any]:
    return table(error, "data", "responseHeaders")


READER = OpencodeParser
