"""`tasks.md` of spec-kit as phases with tasks: what each line says, and whose line it is."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from textwrap import dedent

from fairlane.intake.sources.base import LeftOut
from fairlane.model.record import dataclass, field

_TASK = re.compile(r"(\s*)[-*+]\s*\[([ xX])\]\s+(\**)(T\d+[A-Za-z]*)\b\3[:.]?\s*(.*)$")
_CHECKBOX = re.compile(r"\s*[-*+]\s*\[.?\]\s*(.*)$")
_ALMOST = re.compile(r"\**T[\dX]+")
_TAG = re.compile(r"\[([^\[\]]{1,40})\](?!\()\s*")
_HEADING = re.compile(r"##\s+(\S.*)$")
_SECTION = re.compile(r"#{1,6}\s")
_FENCE = re.compile(r"\s*(```|~~~)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_STORY_TAG = re.compile(r"US-?\d+", re.IGNORECASE)
_ID = re.compile(r"T\d+[A-Za-z]*")
_NEEDS = re.compile(
    rf"\bdepend(?:s|ing)?\s+on:?\s*((?:{_ID.pattern}(?:\s*(?:,|and\b|&|to\b|-|–)\s*)*)+)",
    re.IGNORECASE,
)
_RANGE = re.compile(r"T(\d{1,18})\s*(?:-|–|to\b)\s*T?(\d{1,18})", re.IGNORECASE)
_NUMBER = re.compile(r"Phase\s+([\w.]+)")
_LABEL = re.compile(r"(?:Phase\s+\S+\s*)?\W*(.*)", re.DOTALL)
_IN_PARENTHESES = re.compile(r"\([^)]*\)")
_STORY = re.compile(r"user\s+stor(?:y|ies)\b|story\s+\d|US-?\d", re.IGNORECASE)
_PLAIN = re.compile(r"set-?up|foundation|polish|integration|final\b", re.IGNORECASE)
_RANK = re.compile(r"\bP([1-9])\b")
_SHOWN = 40
#: A range of more ids than this is no range.
_RANGE_MAX = 1_000


@dataclass(slots=True)
class Line:
    """One task."""

    id: str
    text: str
    done: bool
    number: int  # of the line in the file
    indent: int
    beside: bool = False  # [P]
    story: str = ""
    tags: list[str] = field(default_factory=list)  # others than [P] and [US1]
    below: list[str] = field(default_factory=list)  # lines that are indented under it

    @property
    def details(self) -> str:
        """What is written under it."""
        return dedent("\n".join(self.below)).strip()

    @property
    def whole(self) -> str:
        """Its text with what is under it; a line that only goes on is no paragraph."""
        goes_on = self.below and not re.match(r"\s*(?:[-*+>]|\d+\.|```|~~~|$)", self.below[0])
        gap = "\n" if goes_on else "\n\n"
        return f"{self.text}{gap}{self.details}" if self.details else self.text

    def needs(self, known: Container[str]) -> Iterator[str]:
        """The ids that it says it depends on; a range means those of it that are known."""
        for said in _NEEDS.findall(f"{self.text}\n{self.details}"):
            yield from (name for name in _ID.findall(said) if name != self.id)
            for first, last in _RANGE.findall(said):
                numbers = range(int(first), min(int(last), int(first) + _RANGE_MAX))
                names = (f"T{number:0{len(first)}}" for number in numbers)
                yield from (name for name in names if name in known and name != self.id)


@dataclass(slots=True)
class Phase:
    """What is under one heading."""

    title: str
    lines: list[Line] = field(default_factory=list)

    @property
    def number(self) -> str:
        """`2` of `Phase 2: …`; empty under another heading."""
        found = _NUMBER.match(self.title)
        return found[1] if found else ""

    @property
    def is_story(self) -> bool:
        """Whether its heading names a user story; if it says nothing, its tasks decide."""
        label = _LABEL.match(self.title)
        words = label[1] if label else ""
        if _STORY.match(_IN_PARENTHESES.sub("", words)):
            return True
        if not words or _PLAIN.match(words):
            return False
        rank = any(_RANK.search(part) for part in _IN_PARENTHESES.findall(words))
        return rank or all(line.story for line in self.lines)

    @property
    def rank(self) -> int | None:
        """The 1 of P1."""
        found = _RANK.search(self.title)
        return int(found[1]) if found and self.is_story else None

    @property
    def is_open(self) -> bool:
        """Whether a task of it is not ticked off."""
        return any(not line.done for line in self.lines)


class Reader:
    """Reads one file, line by line."""

    def __init__(self, origin: str, shown: str) -> None:
        self._origin, self._shown = origin, shown  # the file, and what its ids begin with
        self._phases = [Phase("")]
        self._task: Line | None = None  # the one to which indented lines belong
        self._ids: set[str] = set()
        self._fenced = False
        self.left_out: list[LeftOut] = []

    def read(self, text: str) -> list[Phase]:
        """The phases that have tasks."""
        plain = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
        for number, line in enumerate(plain.replace("\r\n", "\n").split("\n"), 1):
            self._line(number, line)
        return [phase for phase in self._phases if phase.lines]

    def _line(self, number: int, line: str) -> None:
        within = self._task is not None and _indent(line) > self._task.indent
        fence = _FENCE.match(line)
        self._fenced ^= bool(fence)
        if fence and self._fenced and not within:
            self._task = None  # an example
        parts = None if self._fenced or fence else _TASK.match(line)
        if parts:
            self._take(number, parts)
        elif self._task is not None and (within or not line.strip() or self._fenced or fence):
            self._task.below.append(line.rstrip())
        elif not self._fenced and not fence:
            self._other(number, line)

    def _other(self, number: int, line: str) -> None:
        """A line that is of no task: a heading, a box without an id, or words."""
        self._task = None
        if heading := _HEADING.match(line):
            self._phases.append(Phase(heading[1].rstrip("# \t")))
        elif (box := _CHECKBOX.match(line)) and not _SECTION.match(line):
            bad = bool(_ALMOST.match(box[1]))
            why = "not of the form: - [ ] T001 [P] [US1] text" if bad else "it has no id like T001"
            self._leave(line.strip()[:_SHOWN], why, number, bad)

    def _take(self, number: int, parts: re.Match[str]) -> None:
        indent, done, _, name, words = parts.groups()
        self._task = None
        made = Line(name, "", done != " ", number, len(indent.expandtabs(4)))
        while tag := _TAG.match(words):
            words = words[tag.end() :]
            if tag[1].upper() == "P":
                made.beside = True
            elif _STORY_TAG.fullmatch(tag[1]):
                made.story = tag[1].upper()
            else:
                made.tags.append(tag[1])
        made.text = words.strip()
        if name in self._ids or not made.text:
            why = "its id appears twice" if name in self._ids else "it says nothing"
            self._leave(self._shown + name, why, number, bad=True)
            return
        self._ids.add(name)
        self._task = made
        self._phases[-1].lines.append(made)

    def _leave(self, name: str, why: str, number: int, bad: bool) -> None:
        self.left_out.append(LeftOut(name, why, f"{self._origin}:{number}", bad=bad))


def _indent(line: str) -> int:
    stripped = line.lstrip(" \t")
    return len(line[: len(line) - len(stripped)].expandtabs(4)) if stripped else 0
