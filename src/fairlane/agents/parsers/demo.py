"""The records of the simulated agent, which your own scripts can print too.

One JSON object a line: `{"type": "progress", "text": …, "tokens": {…}, "usd": …}` and, last,
`{"type": "result", "outcome": "succeeded", "detail": …, "tokens": {…}, "usd": …}` with
`retry_after` (seconds) where the outcome is `throttled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.agents.contract import OutputLine, Verdict
from fairlane.agents.parsers.base import RecordParser, begun
from fairlane.agents.records import (
    count,
    micro_dollars,
    micros,
    one_line,
    parse_record,
    session_id,
    table,
    text,
    words,
)
from fairlane.agents.transcript import Entry, failed, said, turned
from fairlane.agents.verdicts import epoch_instant, unfinished
from fairlane.model.project import Tokens
from fairlane.model.record import replace
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.model.instant import Instant

#: What a program may say of itself; the rest is for others to decide.
_SAYS = ("succeeded", "failed", "throttled", "environment")


class DemoParser(RecordParser):
    """Reads progress and one result."""

    def line(self, line: str) -> Iterator[OutputLine]:
        """What a record tells; other lines are text."""
        record = parse_record(line)
        if record is None:
            shown = one_line(line)
            if shown:
                yield OutputLine("text", shown)
            return
        self.begun = True
        self.session = session_id(record.get("session")) or self.session
        self.model = one_line(record.get("model"), 100) or self.model
        self._count(record)
        kind = "final" if record.get("type") == "result" else "usage"
        if kind == "final":
            self.result = record
        elif record.get("type") != "progress":
            kind = "session" if record.get("type") == "start" else "other"
        self.summary = words(record.get("text")) or self.summary
        if kind != "final" or record.get("outcome") == "succeeded":
            self.answer = text(record.get("text")) or self.answer
        yield OutputLine(kind, one_line(record.get("text")), self.tokens, self.usd, self.session)

    def told(self, kind: str, record: dict[str, object]) -> Iterator[Entry]:
        """What a record of this type says in a transcript."""
        if kind == "start":
            yield begun(record)
        elif kind != "result":
            yield from said(record.get("text"))
        elif record.get("outcome") == "succeeded":
            yield from said(record.get("text"))
            yield turned("ended", _tokens(record))
        else:
            yield from failed(text(record.get("detail")) or record.get("text"))
            yield turned("failed", _tokens(record))

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """What the result says; without one, the exit code."""
        facts = self.facts()
        result = table(self.result)
        outcome, detail = text(result.get("outcome")), one_line(result.get("detail"))
        if outcome not in _SAYS:
            return unfinished(exit_code, signal, stderr_tail, self.begun, **facts)
        verdict = Verdict(Outcome(outcome), detail, **facts)
        if verdict.outcome is Outcome.THROTTLED:
            resets_at = epoch_instant(result.get("resets_at"), now)
            wait = micros(result.get("retry_after"))
            return replace(verdict, retry_after=wait, resets_at=resets_at)
        if verdict.outcome is Outcome.ENVIRONMENT:
            return replace(verdict, pause=one_line(result.get("pause")))
        return verdict

    def _count(self, record: Mapping[str, object]) -> None:
        self.tokens = _tokens(record) or self.tokens
        usd = micro_dollars(record.get("usd"))
        self.usd = self.usd if usd is None else usd


def _tokens(record: Mapping[str, object]) -> Tokens | None:
    """Totals so far; None: it does not say."""
    counters = table(record, "tokens")
    if not isinstance(record.get("tokens"), dict):
        return None
    return Tokens(*(count(counters.get(name)) for name in Tokens._fields))


READER = DemoParser
