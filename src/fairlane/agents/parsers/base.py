"""What the parsers of JSON lines share: the facts so far, and reading a line as a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fairlane.agents.contract import Facts, OutputLine
from fairlane.agents.records import one_line, parse_record, session_id, text, whole_text
from fairlane.agents.transcript import Entry, printed, turned
from fairlane.model.project import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlane.agents.contract import FinalRecord


class RecordParser:
    """Keeps what the verdict needs; each program's parser reads its own records."""

    FINAL: ClassVar[tuple[FinalRecord, ...]] = (("type", ("result",)),)

    def __init__(self, baseline: Tokens | None = None) -> None:
        self.baseline = baseline or Tokens()
        self.begun = False  # whether a record was read
        self.session: str | None = None
        self.model: str | None = None
        self.result: dict[str, object] | None = None  # the final record
        self.tokens: Tokens | None = None
        self.usd: int | None = None
        self.summary = ""
        self.answer = ""  # the last message of the agent, as it was printed

    def line(self, line: str) -> Iterator[OutputLine]:
        """What a record tells; what is no record is skipped."""
        record = parse_record(line)
        if record is not None:
            yield from self.read(text(record.get("type")), record)
            self.begun = True

    def read(self, kind: str, record: dict[str, object]) -> Iterator[OutputLine]:
        """What a record of this type tells."""
        raise NotImplementedError

    def entries(self, line: str) -> Iterator[Entry]:
        """What a record says in a transcript; what is no record is a line."""
        record = parse_record(line)
        if record is not None:
            yield from self.told(text(record.get("type")), record)
        elif line.strip():
            yield printed(line)

    def told(self, kind: str, record: dict[str, object]) -> Iterator[Entry]:
        """What a record of this type says in a transcript."""
        raise NotImplementedError

    def opened(self, record: Mapping[str, object], key: str = "session_id") -> OutputLine:
        """The first record names the session, at this key, and the model where it says so."""
        self.session = session_id(record.get(key)) or self.session
        self.model = one_line(record.get("model"), 100) or self.model
        return OutputLine("session", self.model or "", session=self.session)

    def facts(self) -> Facts:
        """What a verdict says in addition to its outcome."""
        facts = Facts(tokens=self.tokens, usd=self.usd, session=self.session)
        words = Facts(summary=self.summary, answer=whole_text(self.answer))
        return facts | words | Facts(model=self.model)


def begun(record: Mapping[str, object]) -> Entry:
    """The first record: a turn begins, with the model where it is told."""
    model = one_line(record.get("model"), 100)
    return turned(f"started ({model})" if model else "started")
