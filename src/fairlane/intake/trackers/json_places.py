"""Where the values of a JSON text are, so that some can be changed with every other byte kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Place(NamedTuple):
    """One value: where it begins and ends, and what it is."""

    start: int
    end: int
    value: object = None  # a scalar as JSON has it
    table: Mapping[str, Place] | None = None
    rows: tuple[Place, ...] | None = None
    first_key: int = 0  # of a table: where its first key begins


class Edit(NamedTuple):
    """New text in place of what is between two places."""

    start: int
    end: int
    text: str


def places(text: str) -> Place:
    """The value of a text that is good JSON; of a key that is given twice the last counts."""
    return _read(text, _skip(text, 0))


def spans(text: str, key: str) -> list[tuple[int, int]]:
    """Where each value of the list under a key begins and ends; the key is one of the outermost."""
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        if name == key:
            return list(_spans(text, at))
        at = _after(text, _DECODER.raw_decode(text, at)[1])
    return []


def _spans(text: str, start: int) -> Iterator[tuple[int, int]]:
    at = _skip(text, start + 1)
    while text[at] != "]":
        end = _DECODER.raw_decode(text, at)[1]
        yield at, end
        at = _after(text, end)


def set_value(text: str, table: Place, key: str, value: str) -> Edit:
    """What sets a key of a table, in the form that the table has."""
    assert table.table is not None
    shown = json.dumps(value, ensure_ascii=text.isascii())
    known = table.table.get(key)
    if known is not None:
        return Edit(known.start, known.end, shown)
    member = f"{json.dumps(key)}: {shown}"
    if not table.table:
        return Edit(table.start, table.end, f"{{{member}}}")
    last = max(place.end for place in table.table.values())
    gap = text[table.start + 1 : table.first_key]
    return Edit(last, last, f",{gap}{member}")


def applied(text: str, edits: list[Edit]) -> str:
    """The text with these edits, which do not overlap."""
    parts, at = [], 0
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _after(text: str, end: int) -> int:
    """Where what follows a value begins, without the comma."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _read(text: str, at: int) -> Place:
    if text[at] == "{":
        return _table(text, at)
    if text[at] == "[":
        return _list(text, at)
    value, end = _DECODER.raw_decode(text, at)
    return Place(at, end, value)


def _table(text: str, start: int) -> Place:
    members: dict[str, Place] = {}
    at = first = _skip(text, start + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        members[key] = _read(text, at)
        at = _after(text, members[key].end)
    return Place(start, at + 1, table=members, first_key=first)


def _list(text: str, start: int) -> Place:
    rows: list[Place] = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        rows.append(_read(text, at))
        at = _after(text, rows[-1].end)
    return Place(start, at + 1, rows=tuple(rows))
