"""Chains of records: where one begins, who continues it, and what is dropped."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from fairlane.engine import attempts, decisions
from fairlane.engine.records import recording
from fairlane.engine.records.recording import size_of
from fairlane.engine.round import committed_round
from fairlane.engine.snapshot import Asker
from fairlane.model.instant import SECOND
from fairlane.model.record import digest
from fairlane.store.base import Decision
from tests.unit.contexts import TestContext


@pytest.fixture
def office(tmp_path: Path) -> TestContext:
    """A queue whose state takes more bytes than what changes."""
    office = TestContext(tmp_path)
    office.policy('caps."all" = 60')
    office.add(*({"id": f"t{number}", "kind": f"k{number % 9}"} for number in range(200)))
    office.lease(30)
    return office


def rows(office: TestContext) -> list[Decision]:
    """All that is recorded."""
    with office.context.store.read() as reading:
        return reading.decisions()


def bases(office: TestContext) -> list[int]:
    """The full record of each."""
    return [row.base for row in rows(office)]


def other(office: TestContext) -> TestContext:
    """Another process with the same store."""
    return TestContext(office.context.home, store=office.context.store)


def same_every_time(office: TestContext) -> bool:
    return decisions.replay(office.context)["different"] == []


def test_a_record_builds_on_the_one_before(office: TestContext) -> None:
    office.lease(1)
    office.lease(1)
    assert bases(office) == [1, 1, 1]
    first, _, last = map(size_of, rows(office))
    assert last * 3 < first
    assert same_every_time(office)


def test_each_process_has_a_chain_of_its_own(office: TestContext) -> None:
    second = other(office)
    for handle in (second, office, second, office):
        handle.lease(1)
    assert bases(office) == [1, 2, 1, 2, 1]
    assert same_every_time(office)


def test_a_chain_ends(office: TestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "FULL_EVERY", 3)
    for _ in range(5):
        office.lease(1)
    assert bases(office) == [1, 1, 1, 4, 4, 4]
    assert same_every_time(office)


def test_what_is_little_is_recorded_whole_where_that_is_no_larger(tmp_path: Path) -> None:
    office = TestContext(tmp_path)
    office.lease(1)
    office.policy('caps."all" = 41')
    office.add(*({"id": f"t{digest(bytes(number))[:50]}"} for number in range(40)))
    leases = office.lease(40)
    office.add({"id": "one"})
    for lease in [*leases, *office.lease(1)]:
        office.finish(lease["lease"])
    office.add({"id": "two"})
    office.lease(1)
    assert bases(office) == [1, 1, 1, 4]  # nearly all that flew is gone
    assert same_every_time(office)


def test_a_record_that_was_undone_is_not_built_on(office: TestContext) -> None:
    with (
        suppress(KeyError),
        committed_round(office.context, Asker("box", 1)) as (tx, _, committed),
    ):
        assert (len(tx.decisions()), len(committed.started)) == (2, 1)
        raise KeyError
    assert bases(office) == [1]
    second = other(office)
    second.lease(1)  # it has the number that was undone
    office.lease(1)
    assert bases(office) == [1, 2, 3]
    assert same_every_time(office)


def test_a_round_of_some_tasks_does_not_end_the_chain(office: TestContext) -> None:
    office.lease(1)
    asker = Asker("box", None, "process", "elsewhere")
    attempts.lease(office.context, asker, only=["t150"])
    office.lease(1)
    attempts.lease(office.context, asker, only=["t151", "t152"])
    assert bases(office) == [1, 1, 3, 1, 3]
    assert same_every_time(office)


def test_chains_are_dropped_whole(office: TestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = map(size_of, rows(office))
    monkeypatch.setattr(decisions, "BYTES_MAX", 3 * first)
    second = other(office)
    second.lease(1)
    office.lease(1)
    for _ in range(4):
        other(office).lease(1)
        assert same_every_time(office)
    assert 1 not in bases(office)
    office.lease(1)  # its chain is gone: it begins another one
    second.lease(1)
    last = [row.number for row in rows(office)][-2:]
    assert bases(office)[-2:] == last
    assert sum(map(size_of, rows(office))) < 4 * first
    assert same_every_time(office)


def test_compaction_keeps_the_beginning_of_what_it_keeps(office: TestContext) -> None:
    office.policy('caps."all" = 60\nhistory.keep = "1m"')
    other(office).lease(1)
    office.wait(40 * SECOND)
    office.lease(1)
    office.wait(40 * SECOND)
    assert decisions.compact(office.context)["decisions"] == 1
    assert bases(office) == [1, 1]
    assert same_every_time(office)
    office.wait(40 * SECOND)
    assert decisions.compact(office.context)["decisions"] == 2
    office.lease(1)
    assert bases(office) == [4]
    assert same_every_time(office)
