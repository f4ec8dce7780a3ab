"""Replay: recorded decisions as they were made, whichever version recorded them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any, cast

from fairlane.engine.context import parse_recorded
from fairlane.engine.records.chain import DAMAGE, Chain
from fairlane.engine.records.differences import unpack
from fairlane.engine.records.older_records import OlderRecords
from fairlane.engine.records.recording import SEAL, before, one
from fairlane.engine.records.seen import HELD
from fairlane.model.codec import canonical, digest
from fairlane.model.errors import FairlaneError, Invalid, NotFound, Refused, listed
from fairlane.model.instant import Instant
from fairlane.model.plan import Plan, decided
from fairlane.model.project import PolicyText
from fairlane.model.record import NamedTuple
from fairlane.model.snapshot import Snapshot
from fairlane.planner import lanes, reference
from fairlane.planner.conclude import plan_bytes, short_document, snapshot_document
from fairlane.policy.policy import Policy
from fairlane.store.base import Decision, Reading

if TYPE_CHECKING:
    from fairlane.model.documents.reports import DigestsDocument

#: How many chains are kept while others are read: as many processes may record in turns.
_CHAINS = 8
_PAGE = 200
#: How many records an error names.
_NAMED = 5


class _Fallen(NamedTuple):
    """A damaged record, and what cannot be read without it."""

    number: int
    fault: str
    later: tuple[int, ...] = ()

    def error(self, number: int) -> Damaged:
        """What is said of one that cannot be read."""
        hint = "The others are whole, or named too: fairlane replay --all."
        if number != self.number:
            message = f"decision {number} builds on decision {self.number}, whose record"
        else:
            message = f"the record of decision {number}"
            if self.later:
                names = listed([str(name) for name in self.later], _NAMED)
                hint = f"Decisions that build on it cannot be read either: {names}. {hint}"
        return Damaged(f"{message} is damaged: {self.fault}", hint)


class Damaged(Refused):
    """A record cannot be read, or one that it builds on."""

    code = "damaged_record"


class Replay:
    """Reads decisions; what it has read of a chain is kept, so that the next one costs little."""

    def __init__(self) -> None:
        self._chains: dict[int, Chain] = {}  # by the record up to which they were read
        self._fallen: dict[int, _Fallen] = {}  # by all that cannot be read
        self._older = OlderRecords()
        self._policies: dict[str, Policy] = {}

    def snapshot(self, reading: Reading, decision: Decision) -> Snapshot:
        """The snapshot from which a decision was made."""
        if SEAL in decision.digests:
            return self._chain(reading, decision).snapshot()
        try:
            return self._older.snapshot(reading, decision)
        except DAMAGE as error:
            number = decision.number
            raise _Fallen(number, _fault(error)).error(number) from error

    def plan(self, reading: Reading, decision: Decision) -> dict[str, Any]:
        """The plan in full: what was recorded, and the holds as they are planned again."""
        recorded = self.recorded(reading, decision)
        if SEAL not in decision.digests:
            return recorded
        again: dict[str, Any] = json.loads(plan_bytes(self._again(reading, decision, lanes.plan)))
        return {**again, **{part: recorded[part] for part in recorded if part not in HELD}}

    def recorded(self, reading: Reading, decision: Decision) -> dict[str, Any]:
        """The plan as it was recorded: in short, by earlier versions in full."""
        if SEAL in decision.digests:
            return self._chain(reading, decision).plan()
        try:
            plan: dict[str, Any] = unpack(decision.plan)
        except DAMAGE as error:
            number = decision.number
            raise _Fallen(number, _fault(error)).error(number) from error
        return plan

    def digests(self, reading: Reading, decision: Decision) -> DigestsDocument:
        """Of the whole snapshot, the policy and the whole plan, over canonical JSON."""
        if SEAL not in decision.digests:
            return cast("DigestsDocument", dict(decision.digests))
        return {
            "snapshot": digest(canonical(snapshot_document(self.snapshot(reading, decision)))),
            "policy": decision.policy,
            "plan": digest(canonical(self.plan(reading, decision))),
        }

    def policy(self, reading: Reading, decision: Decision) -> Policy:
        """The policy that a decision was made by."""
        policy = self._policies.get(decision.policy)
        if policy is None:
            text = reading.table(PolicyText).get(decision.policy)
            if text is None:
                raise NotFound(f"its policy {decision.policy[:12]} is gone")
            policy = self._policies[decision.policy] = parse_recorded(text.text)
        return policy

    def differences(
        self, reading: Reading, decision: Decision, planner: str = "lanes"
    ) -> list[str]:
        """Plan again; every part of the plan that is another one today, or what is damaged."""
        try:
            recorded = self.recorded(reading, decision)
            make = reference.plan if planner == "reference" else lanes.plan
            plan = self._again(reading, decision, make)
            is_short = SEAL in decision.digests
            again = canonical(short_document(decided(plan))) if is_short else plan_bytes(plan)
            same = again == canonical(recorded)
            return [] if same else _differences(recorded, json.loads(again))
        except FairlaneError as error:
            return [error.message]
        except DAMAGE as error:  # of an older record that can be read, and not planned from
            return [_Fallen(decision.number, _fault(error)).error(decision.number).message]

    def _again(
        self,
        reading: Reading,
        decision: Decision,
        make: Callable[[Snapshot, Policy, Instant], Plan],
    ) -> Plan:
        """The plan that is made today of what was seen."""
        policy = self.policy(reading, decision)
        return make(self.snapshot(reading, decision), policy, decision.at)

    def _chain(self, reading: Reading, decision: Decision) -> Chain:
        """The chain of a decision, read up to it."""
        rows: list[Decision] = []
        chain = self._chains.pop(decision.number, None)
        row: Decision | None = decision
        while chain is None and row is not None:
            if row.number in self._fallen:
                raise self._fallen[row.number].error(decision.number)
            rows.append(row)
            try:
                number = before(row)
            except DAMAGE as error:
                raise self._fall(reading, row, _fault(error)).error(decision.number) from error
            chain = self._chains.pop(number, None) if number else Chain()
            row = one(reading, number) if chain is None else None
        if chain is None:
            fault = f"it builds on decision {number}, which is gone"
            raise self._fall(reading, rows[-1], fault).error(decision.number)
        for row in reversed(rows):
            try:
                chain.follow(row)
            except DAMAGE as error:
                raise self._fall(reading, row, _fault(error)).error(decision.number) from error
        self._chains[decision.number] = chain  # the last one
        if len(self._chains) > _CHAINS:
            del self._chains[next(iter(self._chains))]
        return chain

    def _fall(self, reading: Reading, row: Decision, fault: str) -> _Fallen:
        """A record cannot be read, nor those that build on it."""
        names = {row.number: None}
        for other in takewhile(lambda other: other.base == row.base, every(reading, row.number)):
            with suppress(*DAMAGE):
                if before(other) in names:
                    names[other.number] = None
        fallen = _Fallen(row.number, fault, tuple(names)[1:])
        self._fallen |= dict.fromkeys(names, fallen)
        return fallen


def every(reading: Reading, after: int = 0) -> Iterator[Decision]:
    """All decisions after one, page by page."""
    while page := reading.decisions(after, _PAGE):
        yield from page
        after = page[-1].number


def _fault(error: Exception) -> str:
    return error.message if isinstance(error, Invalid) else f"{type(error).__name__}: {error}"


def _differences(before: dict[str, Any], again: dict[str, Any]) -> list[str]:
    return [
        f"{key}: recorded {json.dumps(before.get(key))}, planned {json.dumps(again.get(key))}"
        for key in sorted(before.keys() | again.keys())
        if before.get(key) != again.get(key)
    ]
