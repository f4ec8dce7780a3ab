"""Output: one JSON document, or aligned text with colour on a terminal."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, TextIO

from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, Instant, Micros, show_instant
from fairlane.model.visible import visible, visible_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairlane.model.documents.parts import CheckDocument
    from fairlane.model.errors import FairlaneError

#: The part of an instant that people do not read.
_FRACTION = r"(T\d\d:\d\d:\d\d)\.\d+Z"
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
WIDTH_MIN, WIDTH_MAX, LAST_COLUMN_MIN = 40, 100, 24


def print_json(document: Mapping[str, object]) -> None:
    """One document on standard output."""
    import json

    write(visible_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n")


def print_error(error: FairlaneError, as_json: bool) -> int:
    """An error where it belongs; the exit code is returned."""
    if as_json:
        print_json(error.document())
        return error.exit_code
    lines = [safe(line) for line in error.message.splitlines()] or [""]
    hints = [safe(line) for line in error.hint.splitlines()]
    hint = "\nhint: " + "\n      ".join(hints) if hints else ""
    label = paint("error:", "red", stream=sys.stderr)
    print(f"{label} " + "\n       ".join(lines) + hint, file=sys.stderr)
    return error.exit_code


def warn(message: str) -> None:
    """A warning on standard error."""
    print(f"{paint('warning:', 'yellow', stream=sys.stderr)} {safe(message)}", file=sys.stderr)


def write(text: str) -> None:
    """Text on standard output; what its encoding cannot show is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def safe(text: object) -> str:
    """Text of users in one line, with what is invisible escaped."""
    shown = str(text)
    return shown if shown.isascii() and shown.isprintable() else visible(shown)


def has_colour(stream: TextIO | None = None) -> bool:
    """Colour only on a terminal, and never against the user's wish."""
    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(stream.isatty())


def paint(text: str, *styles: str, stream: TextIO | None = None) -> str:
    """Text in a style, where there is colour."""
    if not text or not has_colour(stream):
        return text
    return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def width() -> int:
    """Columns to fill; a fixed number without a terminal."""
    text = os.environ.get("COLUMNS", "")
    try:
        columns = int(text) if text.isdigit() else os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        columns = WIDTH_MAX
    return min(WIDTH_MAX, max(WIDTH_MIN, columns or WIDTH_MAX))


def wrapped(text: str, indent: int, first: str = "") -> str:
    """A paragraph that fits the width; `first` replaces the indent of its first line."""
    lead = first or " " * indent
    if text.isprintable() and text[-1:].strip() and len(lead) + len(text) <= width():
        return lead + text
    import textwrap  # most texts fit

    return textwrap.fill(
        text,
        width(),
        initial_indent=lead,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def cells(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():  # most of a long transcript
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Sequence[int] = (),
    tint: Mapping[str, str] | None = None,
) -> str:
    """Columns under each other, empty without rows; those in `right` are numbers; the last wraps.

    A cell whose text is in `tint` has that colour, except in the last column.
    """
    texts = [[safe(cell) for cell in row] for row in rows]
    if not texts:
        return ""
    widths = [max(cells(row[at]) for row in [list(head), *texts]) for at in range(len(head))]
    start = 2 + sum(size + 2 for size in widths[:-1])
    fits = start + cells(head[-1]) <= width()  # else it stands below, and needs no name
    lines = [paint(_line(head if fits else head[:-1], widths, right).rstrip(), "dim")]
    for row in texts:
        fixed = _line(row[:-1], widths, right, tint) + "  "
        if row[-1] and width() - start < min(cells(row[-1]), LAST_COLUMN_MIN):
            lines += [fixed, wrapped(row[-1], 5)]  # too narrow: it gets a line of its own
        else:
            text = wrapped(row[-1], start, " " * start)[start:] if row[-1] else ""
            lines.append(fixed + text)
    return "\n".join(line.rstrip() for line in lines)


def _line(
    row: Sequence[str],
    widths: Sequence[int],
    right: Sequence[int],
    tint: Mapping[str, str] | None = None,
) -> str:
    padded = []
    for at, cell in enumerate(row):
        gap = " " * (widths[at] - cells(cell))
        shown = paint(cell, tint[cell]) if tint and cell in tint else cell
        padded.append(gap + shown if at in right else shown + gap)
    return "  " + "  ".join(padded)


def cut(text: str, most: int) -> str:
    """A text in one line, cut to the given number of columns."""
    line = first_line(text)
    if cells(line) <= most:
        return line
    columns = accumulate(map(cells, line))
    fitting = sum(1 for _ in takewhile(lambda used: used < most, columns))
    return line[:fitting].rstrip() + "…"


def about(length: Micros) -> str:
    """A length as people say it: at most two units, rounded down."""
    units = (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND))
    parts: list[str] = []
    for name, size in units:
        count, length = divmod(length, size)
        if count or parts:
            parts.append(f"{count}{name}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part) or "less than 1s"


def until_text(when: Instant, now: Instant) -> str:
    """`in 5m`, `2h ago`, `now`, `just now`."""
    if 0 <= now - when < SECOND:
        return "just now" if when < now else "now"
    return f"in {about(when - now)}" if when > now else f"{about(now - when)} ago"


def relative(when: Instant, now: Instant) -> str:
    """`in 5m (2026-01-30T12:05:00Z)`, `2h ago (…)`."""
    return f"{until_text(when, now)} ({in_seconds(show_instant(when))})"


def in_seconds(text: str) -> str:
    """A text without the fractions of the seconds in its instants."""
    return re.sub(_FRACTION, r"\1Z", text)


def count(number: int, noun: str) -> str:
    """`1 task`, `3 tasks`, `no task`."""
    return f"{number:,} {noun}{'s' if number > 1 else ''}" if number else f"no {noun}"


def first_line(text: str) -> str:
    """The first line with something in it."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def listed(ids: Sequence[str], total: int | None = None) -> str:
    """Names with commas, and how many are not named."""
    rest = 0 if total is None else total - len(ids)
    return ", ".join(ids) + (f" and {rest} more" if rest > 0 else "")


#: Holds whose sentence never names who holds; a short id may occur in it all the same.
_NAMELESS = ("cap", "no_slot", "behind", "probe")


def unsaid(code: str, reason: str, holders: Sequence[str]) -> list[str]:
    """The holders that the sentence of a hold does not name."""
    if code in _NAMELESS:
        return list(holders)
    words = set(re.findall(r"[\w.-]*\w", reason))
    return [task for task in holders if task not in words]


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `13th`."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    end = "th" if number % 100 in (11, 12, 13) else ends.get(number % 10, "th")
    return f"{number}{end}"


def scope_text(scope: str) -> str:
    """`everything`, `project web`."""
    sort, _, name = scope.partition(":")
    return f"{sort} {name}" if name else "everything"


def checks_text(checks: Sequence[CheckDocument]) -> str:
    """The command lines of checks, as a shell would take them."""
    import shlex

    return "; ".join(
        shlex.join(check["argv"]) + (f" (at most {check['timeout']})" if check["timeout"] else "")
        for check in checks
    )
