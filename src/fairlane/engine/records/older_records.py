"""Older records: how decisions were recorded before they named what differs from the last one.

A record had the lanes that differ from those of a base, and the rest of its snapshot whole.
"""

from __future__ import annotations

from fairlane.engine.records.differences import unpack
from fairlane.engine.records.recording import one
from fairlane.model.codec import decode
from fairlane.model.errors import NotFound
from fairlane.model.record import replace
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Entry, Lane, LaneKey, lane_key
from fairlane.store.base import Decision, Reading


class OlderRecords:
    """Snapshots of older records; the lanes of the last base are kept."""

    def __init__(self) -> None:
        self._base = 0
        self._lanes: dict[LaneKey, Lane] = {}

    def snapshot(self, reading: Reading, decision: Decision) -> Snapshot:
        """The snapshot from which a decision was made."""
        if decision.base != self._base:
            self._lanes = _lanes(_base_of(reading, decision))[0]
            self._base = decision.base
        known = dict(self._lanes)
        if decision.base != decision.number:
            differing, gone, window = _lanes(decision)
            for key in gone:
                known.pop(key, None)
            known = {key: _cut(lane, window) for key, lane in known.items()} | differing
        snapshot: Snapshot = decode(Snapshot, unpack(decision.rest))
        return replace(snapshot, lanes=tuple(known.values()))


def _base_of(reading: Reading, decision: Decision) -> Decision:
    if decision.base == decision.number:
        return decision
    if (row := one(reading, decision.base)) is not None:
        return row
    message = f"decision {decision.number} needs decision {decision.base}, which is gone"
    raise NotFound(message, "Older decisions are dropped; replay a newer one.")


def _lanes(decision: Decision) -> tuple[dict[LaneKey, Lane], list[LaneKey], int]:
    """The lanes that are recorded, those that are gone, and how many tasks of others were read."""
    document = unpack(decision.lanes)
    recorded = {}
    for parts, count, rows in document["lanes"]:
        key = lane_key(parts)
        entries = tuple(Entry(*row) for row in rows)
        recorded[key] = Lane(key, count, entries, entries)
    return recorded, [lane_key(parts) for parts in document["gone"]], document["window"]


def _cut(lane: Lane, window: int) -> Lane:
    """The lane as it was read: a plan names the tasks that it saw."""
    if len(lane.by_ready) <= window:
        return lane
    return Lane(lane.key, lane.count, lane.by_ready[:window], lane.by_created[:window])
