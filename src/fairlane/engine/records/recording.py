"""Recording: one chain of records; a handle keeps what it recorded last, and names what differs."""

from __future__ import annotations

from typing import NamedTuple

from fairlane.engine.records.differences import Document, pack
from fairlane.engine.records.seen import KEYED, Seen, Touched
from fairlane.engine.snapshot import PlannedRound
from fairlane.model.record import canonical, changed, digest
from fairlane.store.base import Decision, Reading

#: Grows when the same input may give another plan.
PLANNER_VERSION = 1
#: A chain has at most this many records; the first of them is full: it builds on none.
FULL_EVERY = 256
#: With so few rows a record is full where that takes no more bytes.
LITTLE = 64
#: What a digest of a record is kept by; those of earlier versions have others.
SEAL = "record"


class _Last(NamedTuple):
    """The record that the next one builds on."""

    decision: Decision
    length: int  # of its chain, with it


class Recording:
    """What a handle knows of its chain. Another one has another chain."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._last: _Last | None = None
        self._touched: Touched | None = None  # None: anything may be

    def hear(self, touched: Touched | None) -> None:
        """What may have changed since this was called before; None: anything."""
        if self._touched is not None:
            self._touched = None if touched is None else self._touched.then(touched)

    def next(
        self, reading: Reading, planned: PlannedRound, number: int, oldest: int = 0
    ) -> Decision:
        """The record of a plan; it is the last one, unless its transaction is undone.

        `oldest`: chains that began before this number are dropped.
        """
        last, self._last = self._last, None  # should anything fail, a new chain begins
        if last is not None and not _stands(reading, last, oldest):
            last = None
        if last is None:
            self._seen, self._touched = Seen(), None
        before = last and last.decision
        decision = _record(number, planned, self._seen.see(planned, self._touched), before)
        if last is not None and self._seen.size <= LITTLE:
            seen = Seen()
            full = _record(number, planned, seen.see(planned, None), None)
            if size_of(full) <= size_of(decision):
                decision, self._seen, last = full, seen, None
        self._last = _Last(decision, 1 if last is None else last.length + 1)
        self._touched = Touched(frozenset(), dict.fromkeys(KEYED, frozenset()))
        return decision


def size_of(decision: Decision) -> int:
    """The bytes of a record."""
    return len(decision.lanes) + len(decision.rest) + len(decision.plan)


def sealed(decision: Decision, before: str) -> str:
    """The digest of a record: of what it says, and of the digest of the record before it."""
    parts = decision.lanes, decision.rest, decision.plan
    head = [
        before, decision.number, decision.at, decision.base, decision.policy, decision.planner,
        *map(len, parts),
    ]  # fmt: skip
    return digest(b"".join((canonical(head), *parts)))


def _stands(reading: Reading, last: _Last, oldest: int) -> bool:
    """Whether the next record may build on it: it is kept, not undone, and its chain not long."""
    if last.length >= FULL_EVERY or last.decision.base < oldest:
        return False
    rows = reading.decisions(last.decision.number - 1, 1)
    return bool(rows) and rows[0].digests == last.decision.digests


def _record(
    number: int,
    planned: PlannedRound,
    parts: tuple[Document, Document, Document],
    before: Decision | None,
) -> Decision:
    lanes, rest, plan = parts
    decision = Decision(
        number=number,
        at=planned.now,
        base=number if before is None else before.base,
        policy=planned.policy.digest(),
        planner=PLANNER_VERSION,
        lanes=pack(lanes),
        rest=pack(rest if before is None else {**rest, "before": before.number}),
        plan=pack(plan),
    )
    seal = sealed(decision, "" if before is None else before.digests[SEAL])
    return changed(decision, digests={SEAL: seal})
