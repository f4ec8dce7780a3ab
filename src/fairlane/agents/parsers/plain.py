"""Programs that print what they like: the exit code is the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.agents.contract import OutputLine, Verdict
from fairlane.agents.records import last_line, one_line
from fairlane.agents.transcript import Entry, printed
from fairlane.agents.verdicts import ended
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlane.agents.contract import FinalRecord
    from fairlane.model.instant import Instant
    from fairlane.model.project import Tokens


class PlainParser:
    """Every line is text; the last one is the summary."""

    FINAL: tuple[FinalRecord, ...] = ()

    def __init__(self, baseline: Tokens | None = None) -> None:
        self.last = ""

    def line(self, line: str) -> Iterator[OutputLine]:
        """The line as text."""
        shown = one_line(line)
        if shown:
            self.last = shown
            yield OutputLine("text", shown)

    def entries(self, line: str) -> Iterator[Entry]:
        """The line as it is."""
        yield printed(line.removesuffix("\r"))

    def verdict(
        self, exit_code: int | None, signal: int | None, stderr_tail: str, now: Instant
    ) -> Verdict:
        """Exit 0 is success; the last line, of standard error if it failed, is the summary."""
        if exit_code == 0 and not signal:
            return Verdict(Outcome.SUCCEEDED, summary=self.last)
        summary = self.last if exit_code == 0 else last_line(stderr_tail) or self.last
        return Verdict(Outcome.FAILED, ended(exit_code, signal), summary=summary)


READER = PlainParser
