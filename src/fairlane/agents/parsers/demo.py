"""The stand-in's records, which are also the plainest way for a script of one's own to say more.

One JSON object a line: `{"type": "progress", "text": …, "tokens": {…}, "usd": …}` and, last,
`{"type": "result", "outcome": "succeeded", "detail": …, "tokens": {…}, "usd": …}` with
`retry_after` (seconds) where the outcome is `throttled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.agents.contract import Seen, Verdict
from fairlane.agents.records import (
    count,
    micro_dollars,
    micros,
    one_line,
    record,
    session_id,
    table,
    words,
)
from fairlane.agents.verdicts import unfinished
from fairlane.agents.waits import bounded, epoch_instant
from fairlane.lifecycle.usage import Tokens
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.instant import Instant

#: What a program may say of itself; the rest is for others to decide.
_SAYS = ("succeeded", "failed", "throttled", "environment")


class DemoParser:
    """Reads progress and one result."""

    FINAL = (("type", ("result",)),)

    def __init__(self, baseline: Tokens | None = None) -> None:
        self.begun = False
        self.result: dict[str, Any] | None = None
        self.tokens: Tokens | None = None
        self.usd: int | None = None
        self.session: str | None = None
        self.model: str | None = None
        self.said = ""

    def line(self, text: str) -> Iterator[Seen]:
        """What a record tells; other lines are text."""
        found = record(text)
        if found is None:
            shown = one_line(text)
            if shown:
                yield Seen("text", shown)
            return
        self.begun = True
        self.session = session_id(found.get("session")) or self.session
        self.model = one_line(found.get("model"), 100) or self.model
        self._count(found)
        kind = "final" if found.get("type") == "result" else "usage"
        if kind == "final":
            self.result = found
        elif found.get("type") != "progress":
            kind = "session" if found.get("type") == "start" else "other"
        self.said = words(found.get("text")) or self.said
        yield Seen(kind, one_line(found.get("text")), self.tokens, self.usd, self.session)

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """What the result says; without one, the exit code."""
        held: dict[str, Any] = {"tokens": self.tokens, "usd": self.usd, "session": self.session}
        held |= {"model": self.model, "summary": self.said}
        outcome = (self.result or {}).get("outcome")
        if self.result is None or outcome not in _SAYS:
            return unfinished(exit_code, signal, stderr_tail, self.begun, **held)
        if outcome == "throttled":
            held["retry_after"] = micros(self.result.get("retry_after"))
            held["resets_at"] = bounded(epoch_instant(self.result.get("resets_at")), now)
        if outcome == "environment":
            held["pause"] = one_line(self.result.get("pause"))
        return Verdict(Outcome(outcome), one_line(self.result.get("detail")), **held)

    def _count(self, found: Mapping[str, Any]) -> None:
        if isinstance(found.get("tokens"), dict):
            said = table(found, "tokens")
            self.tokens = Tokens(*(count(said.get(name)) for name in Tokens._fields))
        usd = micro_dollars(found.get("usd"))
        self.usd = self.usd if usd is None else usd


READER = DemoParser
