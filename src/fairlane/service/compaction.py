"""Compaction: what is older than `history.keep` shrinks to what the rules need for ever."""

from __future__ import annotations

from typing import Any

from fairlane.model.event import Event
from fairlane.model.instant import DAY, show_instant
from fairlane.service import SCHEMA, decisions
from fairlane.service.desk import Desk

#: How often it is done by itself.
EVERY = DAY


def compact(desk: Desk) -> dict[str, Any]:
    """Finished tasks become tombstones; old events, decisions and minutes of usage are folded."""
    with desk.store.write() as tx:
        policy, now = desk.policy(), desk.now()
        before = now - policy.history.keep
        counts = tx.compact(before)
        decisions.start_anew(tx)
        tx.put_value("compacted_at", now)
        if any(counts.values()):
            tx.log([Event(0, now, "compacted", data=counts)])
    return {"schema": SCHEMA, "before": show_instant(before), **counts}


def compact_if_due(desk: Desk) -> None:
    """Once a day, whoever comes by."""
    with desk.store.read() as reading:
        last = reading.value("compacted_at")
    if last is None:
        with desk.store.write() as tx:
            tx.put_value("compacted_at", desk.now())
    elif desk.now() - last >= EVERY:
        compact(desk)
