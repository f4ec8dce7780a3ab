"""Chains of records: where one begins, who continues it, and what is dropped."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from fairlane.engine import attempts, decisions
from fairlane.engine.compaction import compact
from fairlane.engine.look.workers import Asker
from fairlane.engine.records.recording import before, size_of
from fairlane.engine.round import committed_round
from fairlane.model.codec import digest
from fairlane.model.instant import SECOND
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
    """With which each is dropped."""
    return [row.base for row in rows(office)]


def built_on(office: TestContext) -> list[int]:
    """The record on which each builds; 0: it is full."""
    return [before(row) for row in rows(office)]


def other(office: TestContext) -> TestContext:
    """Another process with the same store."""
    return TestContext(office.context.home, store=office.context.store)


def same_every_time(office: TestContext) -> bool:
    return decisions.replay(office.context)["different"] == []


def test_a_record_builds_on_the_one_before(office: TestContext) -> None:
    office.lease(1)
    office.lease(1)
    assert built_on(office) == [0, 1, 2]
    first, _, last = map(size_of, rows(office))
    assert last * 3 < first
    assert same_every_time(office)


def test_each_process_has_a_chain_of_its_own(office: TestContext) -> None:
    second = other(office)
    for handle in (second, office, second, office):
        handle.lease(1)
    assert built_on(office) == [0, 0, 1, 2, 3]
    assert same_every_time(office)


def test_every_process_begins_anew_after_so_many(
    office: TestContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "FULL_EVERY", 4)
    second = other(office)
    for handle in (office, second, second, office, office, second, second, office):
        handle.lease(1)
    assert bases(office) == [1, 1, 1, 1, 5, 5, 5, 5, 9]
    assert built_on(office) == [0, 1, 0, 3, 0, 5, 0, 7, 0]
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
    assert built_on(office) == [0, 1, 2, 0]  # nearly all that flew is gone
    assert same_every_time(office)


def test_a_record_that_was_undone_is_not_built_on(office: TestContext) -> None:
    with (
        suppress(KeyError),
        committed_round(office.context, Asker("box", 1)) as (tx, _, committed),
    ):
        assert (len(tx.decisions()), len(committed.started)) == (2, 1)
        raise KeyError
    assert built_on(office) == [0]
    second = other(office)
    second.lease(1)  # it has the number that was undone
    office.lease(1)
    assert built_on(office) == [0, 0, 0]
    assert same_every_time(office)


def test_a_round_of_some_tasks_does_not_end_the_chain(office: TestContext) -> None:
    office.lease(1)
    asker = Asker("box", None, "process", "elsewhere")
    attempts.lease(office.context, asker, only=["t150"])
    office.lease(1)
    attempts.lease(office.context, asker, only=["t151", "t152"])
    assert built_on(office) == [0, 1, 0, 2, 3]
    assert same_every_time(office)


def test_what_is_kept_within_bounds_can_be_replayed(
    office: TestContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = map(size_of, rows(office))
    monkeypatch.setattr(decisions, "FULL_EVERY", 3)
    monkeypatch.setattr(decisions, "BYTES_MAX", 4 * first)
    monkeypatch.setattr(decisions, "PART", first)
    second = other(office)
    for _ in range(9):
        second.lease(1)
        office.lease(1)
        assert same_every_time(office)
    assert 1 not in bases(office)
    assert bases(office)[0] == rows(office)[0].number
    assert sum(map(size_of, rows(office))) < 6 * first


def test_compaction_keeps_the_beginning_of_what_it_keeps(office: TestContext) -> None:
    office.policy('caps."all" = 60\nhistory.keep = "1m"')
    second = other(office)
    second.lease(1)
    office.wait(40 * SECOND)
    office.lease(1)
    office.wait(40 * SECOND)
    assert compacted(office) == 0  # the last one needs the first
    second.lease(1)
    assert built_on(office) == [0, 0, 1, 0]  # after a compaction everybody begins anew
    office.lease(1)
    office.wait(40 * SECOND)
    assert compacted(office) == 3
    assert bases(office) == [4, 4]
    assert same_every_time(office)


def compacted(office: TestContext) -> object:
    """How many decisions a compaction removes."""
    answer = compact(office.context)
    assert answer is not None
    return answer["decisions"]
