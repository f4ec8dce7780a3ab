"""Holds of a plan as what differs from those of the plan before.

A hold has a place, and keeps it where only its numbers or holders change. A row is a place, how
many tasks it holds, and the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from itertools import chain, count
from typing import Any, TypeAlias

from fairlane.engine.records.differences import Document, differ, join, patched, pieces
from fairlane.model.plan import Held, Hold

_Row: TypeAlias = tuple[int, int, tuple[str, ...]]
#: Holds by what is quickly compared; their holders may be thousands.
_ByHead: TypeAlias = dict[tuple[object, ...], list[tuple[Hold, int]]]


class HoldsSeen:
    """What a chain has named, for the one who records it."""

    def __init__(self) -> None:
        self._places: _ByHead = {}
        self._rows: list[_Row] = []
        self._new_places = count()

    def differ(self, held: Iterable[Held]) -> Document:
        """What differs of holds and rows; then it is named."""
        places: _ByHead = {}
        rows: list[_Row] = []
        new: dict[int, Held] = {}
        for row in held:
            place = _place(places, row.hold)
            if place is None:
                place = _place(self._places, row.hold)
                if place is None:
                    place = -1 - len(new)  # until all are known that stay
                    new[place] = row
                places.setdefault(row.hold[:4], []).append((row.hold, place))
            rows.append((place, row.count, row.tasks))
        found: Document = {}
        if new:
            at, found["holds"] = self._placed(new, {row[0] for row in rows})
            rows = [(at.get(place, place), size, tasks) for place, size, tasks in rows]
            places = {
                head: [(hold, at.get(place, place)) for hold, place in pairs]
                for head, pairs in places.items()
            }
        if rows != self._rows:
            found["rows"] = pieces(self._rows, rows)
        self._places, self._rows = places, rows
        return found

    def _placed(self, new: dict[int, Held], stay: Set[int]) -> tuple[dict[int, int], Document]:
        """Places of new holds: that of the hold which their tasks had, where it is alike."""
        place_of = {task: place for place, _, tasks in self._rows for task in tasks}
        pairs = chain.from_iterable(self._places.values())
        left = {place: hold for hold, place in pairs if place not in stay}
        at: dict[int, int] = {}
        found: Document = {}
        for mark, row in new.items():
            hold, document = row.hold, {**row.hold.document()}
            place = next((place_of[task] for task in row.tasks if task in place_of), -1)
            was = left.get(place)
            if was is not None and was[:2] == hold[:2]:
                del left[place]
                found[str(place)] = differ({**was.document()}, document)
            else:
                place = next(self._new_places)
                found[str(place)] = [document]
            at[mark] = place
        return at, found


def _place(places: _ByHead, hold: Hold) -> int | None:
    for known, place in places.get(hold[:4], ()):
        if known.holders == hold.holders:
            return place
    return None


class HoldsTold:
    """The same for the one who reads it."""

    def __init__(self) -> None:
        self._holds: dict[int, Document] = {}
        self._rows: list[list[Any]] = []

    def follow(self, found: Document) -> None:
        """Take a difference over."""
        for place, part in found.get("holds", {}).items():
            known = self._holds.get(int(place), {})
            self._holds[int(place)] = patched(known, part) if isinstance(part, dict) else part[0]
        self._rows = join(self._rows, found["rows"]) if "rows" in found else self._rows
        told = {row[0] for row in self._rows}
        self._holds = {place: hold for place, hold in self._holds.items() if place in told}

    def documents(self) -> list[Document]:
        """The rows as a plan's document has them."""
        return [
            {**self._holds[place], "count": size, "tasks": tasks}
            for place, size, tasks in self._rows
        ]
