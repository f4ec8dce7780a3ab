"""Compaction: what is older than `history.keep` shrinks, part by part, beside all work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from fairlane.engine.context import Context
from fairlane.engine.decisions import anew_if_dropped, start_anew
from fairlane.model.event import Event
from fairlane.model.instant import DAY, Instant, show_instant
from fairlane.model.names import SCHEMA
from fairlane.store.base import Place, Writing

#: How often it is done by itself.
EVERY = DAY
#: How many rows one transaction changes, about.
PART = 200
#: Under which name the store keeps how far a compaction is.
_GOING = "compacting"


class _Going(TypedDict):
    """A compaction that is not through: what its parts removed, and where the next one begins."""

    before: Instant
    place: Place | None  # None: it is through
    tasks: int
    events: int
    decisions: int


def compact(
    context: Context, is_over: Callable[[], bool] = lambda: False
) -> dict[str, object] | None:
    """Finished tasks become tombstones; old events, decisions and minutes of usage are folded.

    None when it `is_over` before it is through: the next one goes on there, as after a crash, and
    tells what all of them removed.
    """
    going: _Going | None = None
    while True:
        began = context.clock.monotonic()
        with context.store.write() as tx:
            known: _Going | None = tx.value(_GOING)
            if going is not None and known is None:
                break  # another process came to the end of it
            going = _part(context, tx, known)
        if going["place"] is None:
            break
        if is_over():
            return None
        context.give_way(began)
    return {"schema": SCHEMA, "before": show_instant(going["before"]), **_counts(going)}


def is_due(context: Context) -> bool:
    """Whether a day has passed since the last one, or it is not through."""
    with context.store.read() as reading:
        last, going = reading.value("compacted_at"), reading.value(_GOING)
    if last is None:
        with context.store.write() as tx:
            tx.put_value("compacted_at", context.now())
        return False
    return going is not None or context.now() - last >= EVERY


def _part(context: Context, tx: Writing, known: _Going | None) -> _Going:
    """The next part; with the last one the compaction is through."""
    now = context.now()
    before = now - context.policy().history.keep
    going = known or _Going(before=before, place=(), tasks=0, events=0, decisions=0)
    before = min(before, going["before"])  # the policy may keep more by now
    done = tx.compact(before, tuple(going["place"] or ()), PART)
    going = _Going(
        before=before,
        place=done.rest,
        tasks=going["tasks"] + done.tasks,
        events=going["events"] + done.events,
        decisions=going["decisions"] + done.decisions,
    )
    if done.rest is not None:
        anew_if_dropped(tx)
        tx.put_value(_GOING, going)
        return going
    start_anew(tx)
    tx.put_value(_GOING, None)
    tx.put_value("compacted_at", now)
    counts = _counts(going)
    if any(counts.values()):
        tx.log([Event(0, now, "compacted", data=counts)])
    return going


def _counts(going: _Going) -> dict[str, int]:
    """What its parts removed."""
    return {name: going[name] for name in ("tasks", "events", "decisions")}
