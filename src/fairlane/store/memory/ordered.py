"""A sorted collection in short lists, so that a change costs the same at every length."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

#: A list that grows past this is cut in two.
CHUNK_MAX = 1024


class Comparable(Protocol):
    """Anything that has an order."""

    def __lt__(self, other: Any, /) -> bool: ...


T = TypeVar("T", bound=Comparable)
K = TypeVar("K")


class Ordered(Generic[T]):
    """Different items, smallest first."""

    __slots__ = ("_chunks", "_lasts", "_size")

    def __init__(self) -> None:
        self._chunks: list[list[T]] = []
        self._lasts: list[T] = []  # the last item of every chunk
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        for chunk in self._chunks:
            yield from chunk

    def __reversed__(self) -> Iterator[T]:
        for chunk in reversed(self._chunks):
            yield from reversed(chunk)

    def add(self, item: T) -> None:
        """Puts an item that is not here yet in its place."""
        self._size += 1
        if not self._chunks:
            self._chunks.append([item])
            self._lasts.append(item)
            return
        at = bisect_left(self._lasts, item)
        if at == len(self._lasts):
            at -= 1
            self._chunks[at].append(item)
            self._lasts[at] = item
        else:
            insort(self._chunks[at], item)
        if len(self._chunks[at]) > CHUNK_MAX:
            self._split(at)

    def remove(self, item: T) -> None:
        """Takes an item out that is here."""
        at = bisect_left(self._lasts, item)
        chunk = self._chunks[at] if at < len(self._chunks) else []
        place = bisect_left(chunk, item)
        if place == len(chunk) or chunk[place] != item:
            raise KeyError(item)
        self._size -= 1
        del chunk[place]
        if not chunk:
            del self._chunks[at], self._lasts[at]
        elif place == len(chunk):
            self._lasts[at] = chunk[-1]

    def first(self, count: int) -> list[T]:
        """The smallest items."""
        if self._chunks and len(self._chunks[0]) >= count:
            return self._chunks[0][:count]
        return list(islice(self, count))

    def head(self) -> T | None:
        """The smallest item."""
        return self._chunks[0][0] if self._chunks else None

    def last(self) -> T | None:
        """The greatest item."""
        return self._lasts[-1] if self._lasts else None

    def after(self, item: T) -> Iterator[T]:
        """All items that are greater, smallest first."""
        at = bisect_right(self._lasts, item)
        if at == len(self._chunks):
            return
        yield from self._chunks[at][bisect_right(self._chunks[at], item) :]
        for chunk in self._chunks[at + 1 :]:
            yield from chunk

    def _split(self, at: int) -> None:
        chunk = self._chunks[at]
        half = len(chunk) // 2
        self._chunks[at : at + 1] = [chunk[:half], chunk[half:]]
        self._lasts[at : at + 1] = [chunk[half - 1], chunk[-1]]


def give(table: dict[K, Ordered[T]], key: K, item: T) -> None:
    """Puts an item into one of many collections, which begins with its first."""
    items = table.get(key)
    if items is None:
        items = table[key] = Ordered()
    items.add(item)


def take(table: dict[K, Ordered[T]], key: K, item: T) -> None:
    """Takes an item out of one of many collections, which ends with its last."""
    items = table[key]
    items.remove(item)
    if not len(items):
        del table[key]
