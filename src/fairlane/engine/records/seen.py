"""Seen: what a chain of records has named so far, and what differs from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from fairlane.engine.look.planned import PlannedRound
from fairlane.engine.records.differences import Document, KnownLane, differ, pieces
from fairlane.model.codec import encode
from fairlane.model.plan import Decided
from fairlane.model.project import History, Pool, Project, Usage
from fairlane.model.record import NamedTuple, dataclass, field, names
from fairlane.model.snapshot import InFlight, Snapshot
from fairlane.model.task import Lane, LaneKey, Status
from fairlane.planner.conclude import short_document


class Keyed(NamedTuple):
    """A part of a snapshot whose rows have keys."""

    kind: Any  # of its rows
    key: Callable[[Any], str] | None = None  # None: it is a mapping already
    ordered: bool = False  # whether its order is its own


#: Attempts in flight are in the order of their tasks' `seq`.
KEYED: dict[str, Keyed] = {
    "in_flight": Keyed(InFlight, lambda flight: flight.task),
    "usage": Keyed(Usage, lambda usage: f"{usage.scope} {usage.window or ''}", ordered=True),
    "history": Keyed(
        History,
        lambda row: f"{row.project} {row.kind} {row.agent or ''}",
        ordered=True,
    ),
    "projects": Keyed(Project),
    "pools": Keyed(Pool),
    "groups": Keyed(str | None),
    "ended": Keyed(Status),
}
#: The other parts are recorded whole where they change; before the first record they are so.
PLAIN: dict[str, Any] = {
    part: getattr(Snapshot(), part)
    for part in names(Snapshot)
    if part not in KEYED and part != "lanes"
}
#: The parts of a plan in short that say what is held.
HELD = ("holds", "held")
_MISSING = object()


@dataclass(slots=True)
class Seen:
    """What the chain has named, as the rows that the plans were made from."""

    window: int = 0
    age_from: str = ""
    lanes: dict[LaneKey, KnownLane] = field(default_factory=dict)
    places: dict[LaneKey, int] = field(default_factory=dict)  # by which records name lanes
    rows: dict[str, dict[str, Any]] = field(default_factory=lambda: {part: {} for part in KEYED})
    parts: dict[str, Any] = field(default_factory=dict)  # as the last snapshot had them
    plain: dict[str, Any] = field(default_factory=lambda: dict(PLAIN))
    held: Document = field(default_factory=dict)  # of the plan before: what holds how many
    clocks: Document = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.lanes) + sum(map(len, self.rows.values()))

    def see(self, planned: PlannedRound) -> tuple[Document, Document, Document]:
        """What differs of the lanes, of the rest of the snapshot, and of the plan."""
        lanes = self._lanes(planned)
        rest: Document = {}
        for part in KEYED:
            now = getattr(planned.snapshot, part)
            if now is not self.parts.get(part) and (found := self._rows(part, now)):
                rest[part] = found
            self.parts[part] = now
        for part, was in self.plain.items():
            now = getattr(planned.snapshot, part)
            if now is not was and now != was:
                self.plain[part] = now
                rest[part] = encode(now)
        return lanes, rest, self._plan(planned.decided)

    # Lanes

    def _lanes(self, planned: PlannedRound) -> Document:
        """Rows of [place or key, size, pieces …]; `wide`: lanes of which more or less was read."""
        every, age_from = planned.snapshot.lanes, planned.policy.score.age_from
        window = planned.window
        gone = self.lanes.keys() - {lane.key for lane in every}
        rows = [row for lane in every if (row := self._lane(lane, age_from))]
        wide = [
            [self.places[lane.key], len(lane.by_ready)]
            for lane in every
            if len(lane.by_ready) != min(lane.count, window)
        ]
        for key in gone:
            del self.lanes[key]
        left = sorted(self.places[key] for key in gone)
        parts: Document = {"rows": rows, "wide": wide, "gone": left}
        return {"window": window, **{name: part for name, part in parts.items() if part}}

    def _lane(self, lane: Lane, age_from: str) -> list[object] | None:
        key, entries = lane.key, lane.in_order(age_from)
        known = self.lanes.get(key)
        if known is None:
            known = KnownLane(0)
        elif known.shows(lane.count, entries):
            return None
        parts = known.differ(entries)
        self.lanes[key] = known.follow(lane.count, parts)
        name = self.places.get(key, key)
        self.places.setdefault(key, len(self.places))
        return [name, lane.count, *parts]

    # The other parts of a snapshot

    def _rows(self, part: str, now: Any) -> Document:
        """Of a part with keys: new rows, what differs in others, those that are gone, the order."""
        keyed, known = KEYED[part], self.rows[part]
        rows = now if keyed.key is None else {keyed.key(row): row for row in now}
        found = _compared(known, rows, known.keys() - rows.keys())
        order = list(rows) if keyed.ordered else None
        for key in found.get("gone", ()):
            del known[key]
        for name in ("new", "differs"):
            known |= {key: rows[key] for key in sorted(found.get(name, ()))}  # as JSON has them
        if order is not None and order != list(known):
            found["order"] = pieces(list(known), order)
            self.rows[part] = {key: known[key] for key in order}
        return found

    def _plan(self, short: Decided) -> Document:
        """The plan in short; of what it holds, and of the share clocks, what differs."""
        document: Document = short_document(short)
        del document["now"]
        held = {part: document.pop(part) for part in HELD}
        document |= {part: value for part, value in held.items() if value != self.held.get(part)}
        self.held = held
        if clocks := document.pop("clocks", None):
            document["everyone"] = clocks["everyone"]
            if differs := differ(self.clocks, clocks["projects"]):
                document["clocks"] = differs
            self.clocks = clocks["projects"]
        return document


def _compared(known: Mapping[str, Any], rows: Mapping[str, Any], gone: Set[str]) -> Document:
    new: Document = {}
    differs: Document = {}
    for key, row in rows.items():
        was = known.get(key, _MISSING)
        if was is _MISSING:
            new[key] = encode(row)
        elif row is not was and row != was:
            before, after = encode(was), encode(row)
            if isinstance(before, dict) and isinstance(after, dict):
                differs[key] = differ(before, after)
            else:
                differs[key] = [after]
    parts = {"new": new, "differs": differs, "gone": sorted(gone)}
    return {name: part for name, part in parts.items() if part}
