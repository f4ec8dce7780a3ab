"""Chain: a full record and those that build on it, read one after the other."""

from __future__ import annotations

import zlib
from typing import Any

from fairlane.engine.records.differences import Document, KnownLane, join, patched, unpack
from fairlane.engine.records.recording import SEAL, sealed
from fairlane.engine.records.seen import HELD, KEYED, PLAIN
from fairlane.model.codec import decode
from fairlane.model.errors import Invalid
from fairlane.model.instant import show_instant
from fairlane.model.record import changed
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Entry, Lane, LaneKey, lane_key
from fairlane.store.base import Decision

#: What reading a damaged record can raise.
DAMAGE = (
    zlib.error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
    Invalid,
)  # fmt: skip


class Chain:
    """What the records up to one say; `follow` reads the next."""

    def __init__(self) -> None:
        self._digest = ""  # of the last record that was read
        self._keys: list[LaneKey] = []  # by their places
        self._lanes: dict[int, KnownLane] = {}
        self._read: dict[int, int] = {}  # of lanes that were read further or less: how far
        self._window = 0
        self._documents: dict[str, dict[str, Any]] = {part: {} for part in KEYED}
        self._rows: dict[str, dict[str, Any]] = {part: {} for part in KEYED}
        self._plain = Snapshot()
        self._held: Document = {}
        self._clocks: Document = {}
        self._plan: Document = {}

    def follow(self, decision: Decision) -> None:
        """Read the record that builds on the last one; what is damaged raises an error."""
        rest = unpack(decision.rest)
        rest.pop("before", None)
        if sealed(decision, self._digest) != decision.digests[SEAL]:
            raise Invalid("its digest is that of another content")
        self._follow_lanes(unpack(decision.lanes))
        for part, document in rest.items():
            if part in KEYED:
                self._follow_rows(part, document)
        plain = {part: document for part, document in rest.items() if part in PLAIN}
        if plain:
            values = decode(Snapshot, plain)
            self._plain = changed(self._plain, **{part: getattr(values, part) for part in plain})
        self._follow_plan(decision, unpack(decision.plan))
        self._digest = decision.digests[SEAL]

    def snapshot(self) -> Snapshot:
        """The snapshot from which the last decision that was read was made."""
        parts: dict[str, Any] = {}
        for part, keyed in KEYED.items():
            rows = self._rows[part]
            parts[part] = dict(rows) if keyed.key is None else tuple(rows.values())
        flights = sorted(parts.pop("in_flight"), key=lambda flight: flight.seq)
        lanes = tuple(self._lane(place, known) for place, known in self._lanes.items())
        return changed(self._plain, lanes=lanes, in_flight=tuple(flights), **parts)

    def plan(self) -> Document:
        """The plan that was made of it, in short."""
        return {**self._plan, **self._held}

    def _lane(self, place: int, known: KnownLane) -> Lane:
        entries = known.entries[: self._read.get(place, self._window)]
        return Lane(self._keys[place], known.size, entries, entries)

    def _follow_lanes(self, document: Document) -> None:
        for name, size, *parts in document.get("rows", ()):
            place = name
            if isinstance(name, list):
                place = len(self._keys)
                self._keys.append(lane_key(name))
            for part in parts:
                if len(part) == 1:
                    part[0] = Entry(*part[0])
            known = self._lanes.get(place, KnownLane(0))
            self._lanes[place] = known.follow(size, parts)
        for place in document.get("gone", ()):
            del self._lanes[place]
        self._read = dict(document.get("wide", ()))
        self._window = document["window"]

    def _follow_rows(self, part: str, found: Document) -> None:
        documents, rows, kind = self._documents[part], self._rows[part], KEYED[part].kind
        for key in found.get("gone", ()):
            del documents[key], rows[key]
        documents |= found.get("new", {})
        for key, differs in found.get("differs", {}).items():
            mapping = isinstance(differs, dict)
            documents[key] = patched(documents[key], differs) if mapping else differs[0]
        for key in (*found.get("new", ()), *found.get("differs", ())):
            rows[key] = decode(kind, documents[key])
        if order := found.get("order"):
            self._rows[part] = {key: rows[key] for key in join(list(rows), order)}

    def _follow_plan(self, decision: Decision, document: Document) -> None:
        self._held |= {part: document.pop(part) for part in HELD if part in document}
        self._plan = {**document, "now": show_instant(decision.at)}
        if "everyone" in document:
            self._clocks = patched(self._clocks, self._plan.pop("clocks", {}))
            clocks = {"everyone": self._plan.pop("everyone"), "projects": self._clocks}
            self._plan["clocks"] = clocks
