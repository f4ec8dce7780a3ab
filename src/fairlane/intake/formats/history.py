"""History: the section of a Markdown page in which each line is a day and what happened on it."""

from __future__ import annotations

import re
from typing import NamedTuple

_TITLE = re.compile(r"^(?:#+[ \t]+)?History:?[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_NEXT = re.compile(r"^(?:#+[ \t].*|[A-Z][\w ]*:[ \t]*\r?)$", re.MULTILINE)


class _Place(NamedTuple):
    """Where the section stands: its title, its first line, and what follows it."""

    title: int
    lines: int
    end: int


def last_line(body: str) -> str:
    """The newest line; empty: there is none."""
    place = _find(body)
    lines = body[place.lines : place.end].split("\n") if place else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def without(body: str) -> str:
    """The page without its history."""
    place = _find(body)
    if place is None:
        return body
    return f"{body[: place.title].rstrip()}\n\n{body[place.end :]}"


def with_line(body: str, line: str, line_end: str) -> str:
    """The page with one line more; the section is made at the end where there is none."""
    place = _find(body)
    if place is None:
        gap = "" if not body or body.endswith("\n") else line_end
        return f"{body}{gap}{line_end}History:{line_end}{line}{line_end}"
    before = body[: place.end].rstrip()
    return f"{before}{line_end}{line}{body[len(before) :]}"


def _find(body: str) -> _Place | None:
    """The last such section."""
    titles = list(_TITLE.finditer(body))
    if not titles:
        return None
    after = _NEXT.search(body, titles[-1].end())
    return _Place(titles[-1].start(), titles[-1].end(), after.start() if after else len(body))
