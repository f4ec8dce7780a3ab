"""Recording: one chain of records; a handle keeps what it recorded last, and names what differs."""

from __future__ import annotations

from fairlane.engine.look.planned import PlannedRound
from fairlane.engine.records.differences import Document, pack, unpack
from fairlane.engine.records.seen import Seen
from fairlane.model.codec import canonical, digest
from fairlane.model.errors import Invalid
from fairlane.model.record import changed
from fairlane.store.base import Decision, Reading

#: Grows when the same input may give another plan.
PLANNER_VERSION = 1
#: With so few rows a record is full where that takes no more bytes.
LITTLE = 64
#: What a digest of a record is kept by; those of earlier versions have others.
SEAL = "record"


class Recording:
    """What a handle knows of its chain. Another one has another chain."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._last: Decision | None = None  # what the next record builds on

    def next(self, reading: Reading, planned: PlannedRound, number: int, base: int) -> Decision:
        """The record of a plan; it is the last one, unless its transaction is undone.

        A record builds only on one of the same base: all of these are dropped together.
        """
        last, self._last = self._last, None  # should anything fail, a new chain begins
        if last is not None and (last.base != base or not _stands(reading, last)):
            last = None
        if last is None:
            self._seen = Seen()
        decision = _record(number, base, planned, self._seen.see(planned), last)
        if last is not None and self._seen.size <= LITTLE:
            seen = Seen()
            full = _record(number, base, planned, seen.see(planned), None)
            if size_of(full) <= size_of(decision):
                decision, self._seen = full, seen
        self._last = decision
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


def one(reading: Reading, number: int) -> Decision | None:
    """One decision; None: it is not there."""
    rows = reading.decisions(number - 1, 1)
    return rows[0] if rows and rows[0].number == number else None


def before(decision: Decision) -> int:
    """The number of the record that one builds on; 0: it is full."""
    number: int = unpack(decision.rest).get("before", 0)
    if not 0 <= number < decision.number:
        raise Invalid(f"it builds on decision {number}, which is not before it")
    return number


def _stands(reading: Reading, last: Decision) -> bool:
    """Whether it is kept, and nobody undid it."""
    row = one(reading, last.number)
    return row is not None and row.digests == last.digests


def _record(
    number: int,
    base: int,
    planned: PlannedRound,
    parts: tuple[Document, Document, Document],
    last: Decision | None,
) -> Decision:
    lanes, rest, plan = parts
    decision = Decision(
        number=number,
        at=planned.now,
        base=base,
        policy=planned.policy.digest(),
        planner=PLANNER_VERSION,
        lanes=pack(lanes),
        rest=pack(rest if last is None else {**rest, "before": last.number}),
        plan=pack(plan),
    )
    seal = sealed(decision, "" if last is None else last.digests[SEAL])
    return changed(decision, digests={SEAL: seal})
