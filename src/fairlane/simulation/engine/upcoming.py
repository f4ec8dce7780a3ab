"""Upcoming: what the world will do, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from fairlane.model.instant import Instant


class Dated(Protocol):
    """Something that happens at an instant."""

    @property
    def at(self) -> Instant:
        """When."""


T = TypeVar("T", bound=Dated)


class Upcoming(Generic[T]):
    """Reads one thing ahead, and no further: a world may have no end."""

    def __init__(self, things: Iterable[T]) -> None:
        self._rest = iter(things)
        self._first = next(self._rest, None)

    @property
    def at(self) -> Instant | None:
        """When the next one happens; None: nothing more does."""
        return None if self._first is None else self._first.at

    def take(self, now: Instant) -> list[T]:
        """Everything that has happened by now."""
        taken: list[T] = []
        while self._first is not None and self._first.at <= now:
            taken.append(self._first)
            self._first = next(self._rest, None)
        return taken
