"""Patches: the text that git writes of one file, as hunks with numbered lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from fairlane.model.record import dataclass, field

#: Most lines of one file, and most letters of one line, that are shown.
LINES_MAX = 3000
LETTERS_MAX = 1000
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@(.*)")


@dataclass(slots=True)
class Line:
    """One line; a number is 0 on the side where it is not."""

    sign: str  # " ", "-", "+", "\\"
    old: int
    new: int
    text: str


@dataclass(slots=True)
class Block:
    """Lines that stayed, or those that went and those that came for them."""

    same: list[Line] = field(default_factory=list)
    gone: list[Line] = field(default_factory=list)
    come: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Hunk:
    """A part of a file that changed."""

    head: str  # `@@ -1,7 +1,9 @@ def name():`
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Patch:
    """What is shown of a patch."""

    hunks: list[Hunk]
    notes: list[str]  # modes, and that a file has no line at its end
    left_out: int  # lines


def read(patch: str) -> Patch:
    """A patch in hunks; no text makes it raise."""
    lines = patch.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    found, end = Patch([], [], 0), _line_end(lines)
    old = new = shown = 0
    hunk: Hunk | None = None
    for raw in lines:
        head = _HUNK.match(raw)
        if head:  # every line of a file has a sign before it, so that none can look like this
            hunk = Hunk(raw[:LETTERS_MAX])
            old, new = int(head[1]), int(head[2])
            found.hunks.append(hunk)
        elif hunk is None or raw[:1] not in (" ", "-", "+", "\\"):
            hunk = None
            found.notes += _note(raw)
        elif shown >= LINES_MAX:
            found.left_out += 1
        else:
            sign = raw[0]
            line = Line(sign, old * (sign in " -"), new * (sign in " +"), _short(raw[1:], end))
            _put(hunk, line)
            old, new, shown = old + (sign in " -"), new + (sign in " +"), shown + 1
    return found


def _note(raw: str) -> Iterator[str]:
    """The lines of a head that say more than the list of files does."""
    if raw.startswith(("old mode", "new mode", "new file mode 1200", "new file mode 16")):
        yield raw[:LETTERS_MAX]


def _line_end(lines: list[str]) -> str:
    """The carriage return that every line ends with; where they differ it is shown."""
    first = next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines))
    signed = [
        line
        for line, after in pairwise([*lines[first:], ""])
        if line[:1] in (" ", "-", "+") and not after.startswith("\\")
    ]
    return "\r" if all(line.endswith("\r") for line in signed) else ""


def _short(text: str, end: str) -> str:
    if len(text) <= LETTERS_MAX:
        return text.removesuffix(end)
    return f"{text[:LETTERS_MAX]}… ({len(text) - LETTERS_MAX:,} more letters)"


def _put(hunk: Hunk, line: Line) -> None:
    last = hunk.blocks[-1] if hunk.blocks else None
    if line.sign == "\\":
        if last is not None:  # it belongs to the line before it
            (last.come or last.gone or last.same).append(line)
        return
    if line.sign == " ":
        if last is None or not last.same:
            hunk.blocks.append(last := Block())
        last.same.append(line)
        return
    if last is None or last.same or (line.sign == "-" and last.come):
        hunk.blocks.append(last := Block())
    (last.gone if line.sign == "-" else last.come).append(line)
