"""LaneIndexes: the lanes with their tasks in the order of both ages."""

from __future__ import annotations

from fairlane.model.task import Entry, Lane, LaneKey
from fairlane.store.memory.ordered import Ordered

Aged = tuple[int, int, Entry]  # since, seq


class LaneIndex:
    """One lane; caches what was read of it until it changes."""

    __slots__ = ("_by_created", "_by_ready", "_read", "key")

    def __init__(self, key: LaneKey) -> None:
        self.key = key
        self._by_ready: Ordered[Aged] = Ordered()
        self._by_created: Ordered[Aged] = Ordered()
        self._read: dict[tuple[bool, int], Lane] = {}

    def __len__(self) -> int:
        return len(self._by_ready)

    def add(self, entry: Entry) -> None:
        """A task joins."""
        self._by_ready.add((entry.ready_since, entry.seq, entry))
        self._by_created.add((entry.created_at, entry.seq, entry))
        self._read.clear()

    def remove(self, entry: Entry) -> None:
        """A task leaves."""
        self._by_ready.remove((entry.ready_since, entry.seq, entry))
        self._by_created.remove((entry.created_at, entry.seq, entry))
        self._read.clear()

    def read(self, age_from: str, window: int) -> Lane:
        """The lane with its oldest tasks by this age."""
        by_created = age_from == "created"
        lane = self._read.get((by_created, window))
        if lane is None:
            order = self._by_created if by_created else self._by_ready
            some = tuple([entry for _, _, entry in order.first(window)])
            other = _in_order(some, by_created=not by_created)
            lane = Lane(self.key, len(self), *((other, some) if by_created else (some, other)))
            self._read[by_created, window] = lane
        return lane

    def seqs(self) -> list[int]:
        """Its tasks, by seq."""
        return sorted(seq for _, seq, _ in self._by_ready)


def _in_order(entries: tuple[Entry, ...], by_created: bool) -> tuple[Entry, ...]:
    """By another age; the same tuple where that is the same order."""
    keys = [(e.created_at if by_created else e.ready_since, e.seq) for e in entries]
    if keys == sorted(keys):
        return entries
    return tuple([entry for _, entry in sorted(zip(keys, entries, strict=True))])


class LaneIndexes:
    """Every lane that has a task."""

    def __init__(self) -> None:
        self.known: dict[LaneKey, LaneIndex] = {}

    def add(self, key: LaneKey, entry: Entry) -> None:
        """A task joins its lane, which is made if it is the first."""
        line = self.known.get(key)
        if line is None:
            line = self.known[key] = LaneIndex(key)
        line.add(entry)

    def remove(self, key: LaneKey, entry: Entry) -> None:
        """A task leaves its lane, which ends with its last."""
        line = self.known[key]
        line.remove(entry)
        if not len(line):
            del self.known[key]
