"""The heads of lanes: read once, and again when they have changed."""

from __future__ import annotations

from operator import attrgetter

from fairlane.model.task import Entry, Lane, LaneKey
from fairlane.store.base import Reading

#: How many tasks of a lane are read at first, and how many times more where they are used up.
WINDOW = 8
WINDOW_GROWTH = 16
#: Where there are few lanes, more of each are read: at most this many tasks together.
ENTRIES = 2_000


class Lanes:
    """Every lane with ready tasks, by how many tasks of each were asked for."""

    def __init__(self, age_from: str) -> None:
        self._age_from = age_from
        self._widest = 0
        self._read: dict[LaneKey, Lane] = {}  # the widest
        self._cut: dict[int, dict[LaneKey, Lane]] = {}
        self._stale: dict[int, set[LaneKey]] = {}  # by window: not cut since they changed
        self._tuples: dict[int, tuple[Lane, ...]] = {}

    def read(self, reading: Reading, changed: set[LaneKey]) -> None:
        """Read again what has changed; what nobody has asked for yet is read when it is."""
        if not self._widest or not changed:
            return
        found = {lane.key: lane for lane in reading.lanes(self._age_from, self._widest, changed)}
        for key in changed - found.keys():
            self._read.pop(key, None)
        self._read |= found
        for stale in self._stale.values():
            stale.update(changed)

    def heads(self, reading: Reading, window: int) -> tuple[Lane, ...]:
        """All lanes with their first tasks."""
        if window > self._widest:
            lanes = reading.lanes(self._age_from, window)
            self._read, self._widest = {lane.key: lane for lane in lanes}, window
        cut = self._cut.get(window)
        if cut is None:
            cut = self._cut[window] = {key: self._first(key, window) for key in self._read}
            self._stale[window] = set()
        elif self._stale[window]:
            for key in self._stale[window]:
                if key in self._read:
                    cut[key] = self._first(key, window)
                else:
                    cut.pop(key, None)
            self._stale[window] = set()
        else:
            return self._tuples[window]
        self._tuples[window] = tuple(cut.values())
        return self._tuples[window]

    def width(self, lanes: tuple[Lane, ...], window: int, limit: int | None) -> int:
        """How many tasks of each lane to read: where there are few lanes, all that may be taken."""
        if not any(lane.count > window for lane in lanes):
            return window
        wide = min(ENTRIES // len(lanes), WINDOW * WINDOW_GROWTH)
        wide = wide if limit is None else min(wide, limit + 1)  # one more than can be taken
        while window * 2 <= wide:
            window *= 2
        return window

    def _first(self, key: LaneKey, window: int) -> Lane:
        """The lane as it would be read with this window."""
        lane = self._read[key]
        entries = lane.in_order(self._age_from)
        if len(entries) <= window:
            return lane
        some = entries[:window]
        if lane.by_ready is lane.by_created:
            return Lane(key, lane.count, some, some)
        if self._age_from == "created":
            return Lane(key, lane.count, _by(some, "ready_since"), some)
        return Lane(key, lane.count, some, _by(some, "created_at"))


def _by(entries: tuple[Entry, ...], age: str) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=attrgetter(age, "seq")))
