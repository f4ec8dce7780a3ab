"""Holds of a plan as what differs from those of the plan before.

A hold has a place, and keeps it where only its numbers or holders change. A row is a place, how
many tasks it holds, and the first of them.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Any, TypeAlias

from fairlane.engine.records.differences import Document, differ, join, patched, pieces
from fairlane.model.plan import Held, Hold

_Row: TypeAlias = tuple[int, int, tuple[str, ...]]


class HoldsSeen:
    """What a chain has named, for the one who records it."""

    def __init__(self) -> None:
        self._places: dict[Hold, int] = {}
        self._rows: list[_Row] = []
        self._new_places = count()

    def differ(self, held: Collection[Held]) -> Document:
        """What differs of holds and rows; then it is named."""
        first: dict[Hold, Held] = {}
        for row in held:
            first.setdefault(row.hold, row)
        places = {hold: self._places[hold] for hold in first if hold in self._places}
        found: Document = {}
        if new := {hold: row for hold, row in first.items() if hold not in places}:
            left = {place: hold for hold, place in self._places.items() if hold not in places}
            found["holds"] = self._placed(new, places, left)
        rows = [(places[row.hold], row.count, row.tasks) for row in held]
        if rows != self._rows:
            found["rows"] = pieces(self._rows, rows)
        self._places, self._rows = places, rows
        return found

    def _placed(
        self, new: dict[Hold, Held], places: dict[Hold, int], left: dict[int, Hold]
    ) -> Document:
        """New holds by their places: that of the hold which their tasks had, where it is alike."""
        place_of = {task: place for place, _, tasks in self._rows for task in tasks}
        found: Document = {}
        for hold, row in new.items():
            place = next((place_of[task] for task in row.tasks if task in place_of), -1)
            was = left.get(place)
            if was is not None and (was.gate, was.code) == (hold.gate, hold.code):
                del left[place]
                found[str(place)] = differ(_document(was), _document(hold))
            else:
                place = next(self._new_places)
                found[str(place)] = [_document(hold)]
            places[hold] = place
        return found


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


def _document(hold: Hold) -> Document:
    return {**hold.document()}
