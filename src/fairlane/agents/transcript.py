"""Transcript: what an agent said and did, entry by entry, from the lines that its program prints.

A parser turns one line into entries and keeps nothing of the lines before. So a transcript goes on
from any place in a log that grows: the byte where a line begins, how many of its entries are known,
and the number of the next entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from fairlane.agents.records import text
from fairlane.model.errors import Invalid
from fairlane.model.project import Tokens
from fairlane.model.visible import visible

#: Most bytes of the text of an entry, and most letters of a tool's name and argument.
TEXT_BYTES = 64 * 1024
TOOL_LETTERS, ARGUMENT_LETTERS = 200, 2_000
#: The arguments that say what a tool works on, the most telling first.
_TELLING = (
    "command", "cmd", "pattern", "query", "url", "file_path", "filePath", "absolute_path",
    "notebook_path", "path", "dir_path", "paths", "prompt", "description", "text", "name",
)  # fmt: skip


class Entry(NamedTuple):
    """One entry: what was said, a tool and its main argument, its result, a turn, an error."""

    kind: str  # said, tool, result, turn, error, answer, line
    text: str = ""
    tool: str = ""
    argument: str = ""
    tokens: Tokens | None = None
    truncated: bool = False
    joins: bool = False  # a piece of a message: what follows may belong to it


class Place(NamedTuple):
    """Where a transcript goes on."""

    offset: int = 0  # the byte where a line begins
    skip: int = 0  # how many of its entries are known
    number: int = 1  # of the next entry

    @classmethod
    def parse(cls, cursor: str | None) -> Place:
        """The place that a cursor names."""
        parts = (cursor or "0.0.1").split(".")
        if len(parts) != 3 or not all(_is_number(part) for part in parts):
            raise Invalid(f"not a cursor: {cursor!r}", "Give the `cursor` of the page before.")
        return cls(*map(int, parts))

    def __str__(self) -> str:
        return f"{self.offset}.{self.skip}.{self.number}"


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= 16


class Line(Protocol):
    """One line of a log."""

    @property
    def start(self) -> int:
        """Its first byte."""

    @property
    def end(self) -> int:
        """The first byte of what follows."""

    @property
    def text(self) -> str:
        """What it says."""

    @property
    def whole(self) -> bool:
        """Whether this is all of it; else it is a part of a line that is too long."""


class Reads(Protocol):
    """What makes entries of a line: a parser."""

    def entries(self, line: str) -> Iterator[Entry]:
        """What a line tells; no line makes it raise."""


class Numbered(NamedTuple):
    """An entry that can be shown, its number, and the byte where it begins."""

    number: int
    offset: int
    entry: Entry


class Transcript:
    """Makes entries of lines; `place` is where it goes on after the last one that it gave."""

    def __init__(self, parser: Reads, place: Place) -> None:
        self._parser, self.place = parser, place
        self._open: Entry | None = None  # a message whose end has not come
        self._begun = place.offset  # the line in which it began
        self._after = place  # where it goes on after that message

    def read(self, lines: Iterable[Line]) -> Iterator[Numbered]:
        """The entries of these lines; a message that may go on is kept back: see `rest`."""
        skip = self.place.skip
        for line in lines:
            whole = self._parser.entries(line.text) if line.whole else iter([too_long(line.text)])
            for at, entry in enumerate(whole):
                if at >= skip:
                    yield from self._take(line, at, entry)
            skip = 0
            self._after = self._after._replace(offset=line.end, skip=0)
            if self._open is None:
                self.place = self._after

    def rest(self) -> Iterator[Numbered]:
        """Nothing follows: what was kept back."""
        if self._open is not None:
            entry, self._open = self._open, None
            yield self._give(entry, self._begun, self._after)

    def _take(self, line: Line, at: int, entry: Entry) -> Iterator[Numbered]:
        after = Place(line.start, at + 1, self.place.number + 1)
        if self._open is not None and entry.joins and len(self._open.text) < TEXT_BYTES:
            self._open = self._open._replace(text=self._open.text + entry.text)
            self._after = after
            return
        yield from self.rest()
        after = after._replace(number=self.place.number + 1)
        if entry.joins:
            self._open, self._begun, self._after = entry, line.start, after
        else:
            yield self._give(entry, line.start, after)

    def _give(self, entry: Entry, offset: int, after: Place) -> Numbered:
        number, self.place, self._after = self.place.number, after, after
        return Numbered(number, offset, shown(entry))


def shown(entry: Entry) -> Entry:
    """An entry that hides nothing: bounded, UTF-8, with what is invisible escaped."""
    said = entry.text[: TEXT_BYTES + 1].replace("\r\n", "\n")
    data = visible(said, lines=True).encode("utf-8", "replace")
    return entry._replace(
        text=data[:TEXT_BYTES].decode("utf-8", "ignore"),
        tool=in_a_line(entry.tool, TOOL_LETTERS),
        argument=in_a_line(entry.argument, ARGUMENT_LETTERS),
        truncated=entry.truncated or len(entry.text) > TEXT_BYTES or len(data) > TEXT_BYTES,
        joins=False,
    )


def in_a_line(words: str, most: int) -> str:
    """Text in one line, with what is invisible escaped."""
    flat = visible(" ".join(words[: 4 * most].split())).encode("utf-8", "replace").decode("utf-8")
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def printed(line: str) -> Entry:
    """A line as it is."""
    return Entry("line", line)


def too_long(line: str) -> Entry:
    """A part of a line that is too long to be read."""
    return Entry("line", line, truncated=True)


def said(words: object) -> Iterator[Entry]:
    """What the agent said, if it is something."""
    if text(words).strip():
        yield Entry("said", text(words).strip("\r\n"))


def failed(words: object) -> Iterator[Entry]:
    """What went wrong, if it is told."""
    if text(words).strip():
        yield Entry("error", text(words).strip())


def used(tool: object, argument: object) -> Entry:
    """The use of a tool; of several arguments the one that says most."""
    return Entry("tool", tool=text(tool) or "?", argument=main_argument(argument))


def resulted(words: object) -> Entry:
    """What came out of a tool."""
    return Entry("result", _content(words).strip("\r\n"))


def turned(how: str, tokens: Tokens | None = None) -> Entry:
    """A turn begins or ends."""
    return Entry("turn", how, tokens=tokens)


def main_argument(argument: object) -> str:
    """The argument of a tool that tells most, as text."""
    if isinstance(argument, Mapping):
        named = next((argument[name] for name in _TELLING if _tells(argument.get(name))), None)
        only = next(iter(argument.values())) if len(argument) == 1 else None
        argument = named if named is not None else only if isinstance(only, str) else argument
    if isinstance(argument, str):
        return argument
    if isinstance(argument, list) and all(isinstance(word, str) for word in argument):
        return " ".join(argument)
    return "" if argument in (None, {}, []) else _json(argument)


def _tells(value: object) -> bool:
    """Whether this is a text, or a list of texts such as a command line."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(word, str) for word in value)
    return isinstance(value, str) and bool(value.strip())


def _content(value: object) -> str:
    """The text of a result: as it is, or of the parts that have one."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_part(part) for part in value)
    if isinstance(value, Mapping) and isinstance(value.get("content"), list | str):
        return _content(value["content"])
    return "" if value is None else _json(value)


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        return text(part.get("text")) or f"[{text(part.get('type')) or 'data'}]"
    return _json(part)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "[data]"
