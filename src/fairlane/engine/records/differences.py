"""Differences: what turns one document or sequence into the next, in few bytes, as JSON has it."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from fairlane.model.codec import canonical
from fairlane.model.record import NamedTuple
from fairlane.model.task import Entry

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
#: A sequence out of an older one: [from, to] is a slice of that, [row] is a new row.
Pieces: TypeAlias = list[list[Any]]
#: Documents with fewer bytes are recorded as they are.
SHORT = 256
#: A longer sequence inside a document is recorded in pieces.
_WHOLE = 4


def pieces(before: Sequence[T], after: Sequence[T]) -> Pieces:
    """What makes `after` out of `before`; rows are compared as they are."""
    same = 0
    for was, now in zip(before, after, strict=False):
        if was is not now and was != now:
            break
        same += 1
    parts: Pieces = [[0, same]] if same else []
    if same == len(after):
        return parts
    places = {row: place for place, row in enumerate(before[same:], same)}
    found = [places.get(row, -1) for row in after[same:]]
    taken = _rising(found)
    for at, (place, row) in enumerate(zip(found, after[same:], strict=True)):
        if at not in taken:
            parts.append([row])
        elif parts and len(parts[-1]) == 2 and parts[-1][1] == place:
            parts[-1][1] = place + 1
        else:
            parts.append([place, place + 1])
    return parts


def _rising(places: Sequence[int]) -> set[int]:
    """Which of the places from 0 on to keep, so that they rise, and are as many as can be."""
    lowest: list[int] = []  # at each length: where the run ends whose last place is lowest
    ends: list[int] = []
    before: list[int] = []
    for at, place in enumerate(places):
        length = bisect_left(lowest, place) if place >= 0 else 0
        before.append(ends[length - 1] if length else -1)
        if place >= 0:
            lowest[length : length + 1] = [place]
            ends[length : length + 1] = [at]
    kept: set[int] = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return kept


def join(before: Sequence[T], parts: Pieces) -> list[T]:
    """The sequence that the pieces make."""
    after: list[T] = []
    for part in parts:
        if len(part) == 2:
            after += before[part[0] : part[1]]
        else:
            after.append(part[0])
    return after


def differ(before: Mapping[str, Any], after: Mapping[str, Any]) -> Document:
    """By name: null is gone, [value] new, [0, pieces] a sequence, a mapping a difference in it."""
    found: Document = {name: None for name in before if name not in after}
    for name, value in after.items():
        if name not in before:
            found[name] = [value]
        elif (was := before[name]) != value:
            found[name] = _differ(was, value)
    return found


def _differ(was: Any, value: Any) -> object:
    if isinstance(was, dict) and isinstance(value, dict):
        return differ(was, value)
    if isinstance(was, list) and isinstance(value, list) and len(value) > _WHOLE:
        if all(type(row) is str for row in (*was, *value)):
            parts = pieces(was, value)
        else:
            rows = {canonical(row): row for row in value}
            parts = pieces([canonical(row) for row in was], list(map(canonical, value)))
            parts = [part if len(part) == 2 else [rows[part[0]]] for part in parts]
        if any(len(part) == 2 for part in parts):
            return [0, parts]
    return [value]


def patched(before: Document, found: Document) -> Document:
    """The document after a difference; the one before stays as it is."""
    after = dict(before)
    for name, value in found.items():
        if value is None:
            del after[name]
        elif isinstance(value, dict):
            after[name] = patched(before[name], value)
        elif len(value) == 2:
            after[name] = join(before[name], value[1])
        else:
            after[name] = value[0]
    return after


class KnownLane(NamedTuple):
    """A lane as records have it: what was ever read of it, of which a plan saw the beginning."""

    size: int  # ready tasks in it
    entries: tuple[Entry, ...] = ()

    def shows(self, size: int, entries: tuple[Entry, ...]) -> bool:
        """Whether it begins so."""
        return self.size == size and self.entries[: len(entries)] == entries

    def differ(self, entries: tuple[Entry, ...]) -> Pieces:
        """What makes it begin with these; none: it does."""
        parts = pieces(self.entries, entries)
        return [] if parts == [[0, len(entries)]] else parts

    def follow(self, size: int, parts: Pieces) -> KnownLane:
        """The lane after a difference; what it has after the last slice stays its end."""
        none = len(self.entries) if parts else 0
        end = max((part[1] for part in parts if len(part) == 2), default=none)
        return KnownLane(size, (*join(self.entries, parts), *self.entries[end:])[:size])


def pack(document: object) -> bytes:
    """A document as records keep it: fewer bytes where that is worth the time."""
    data = canonical(document)
    return data if len(data) < SHORT else zlib.compress(data, 1)


def widen(data: bytes) -> bytes:
    """What was packed; what was short stayed as it is: it begins with {."""
    return data if data.startswith(b"{") else zlib.decompress(data)


def unpack(data: bytes) -> Any:
    """The document that was packed."""
    return json.loads(widen(data))
