"""Cases: what is old shrinks to what is kept for ever."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane.model.errors import Refused
from fairlane.model.event import Event
from fairlane.model.instant import DAY, HOUR
from fairlane.model.project import PolicyText
from fairlane.model.task import Status
from fairlane.store.base import Booking, Reading, Store
from fairlane.testing.stores.builders import (
    attempt,
    change,
    ended,
    put,
    ready,
    undone,
    waits,
)
from fairlane.testing.stores.small_tables import decision, numbers

THEN = 100 * DAY + 5 * HOUR


def total(reading: Reading, scope: str) -> Booking:
    """Everything that a scope ever used."""
    return reading.usage_sums(scope, 0)[scope]


class CompactCases:
    """Tasks, events, decisions, usage."""

    def test_old_finished_tasks_shrink(self, store: Store) -> None:
        said: dict[str, Any] = {
            "prompt": "long",
            "title": "t",
            "env": {"A": "b"},
            "meta": {"x": 1},
            "depth": 2,
            "attempts": 2,
        }
        old = ended("old", 1, THEN - 1, **said)
        gone = ended("gone", 2, 5, Status.CANCELED, reason="cleared", **said)
        young = ended("young", 3, THEN, **said)
        put(store, old, gone, young, ready("a", 4, **said))
        with store.write() as writing:
            assert writing.number("fence", 2) == 1
            writing.put_attempts([attempt(old, 1, ended_at=3), attempt(young, 2, ended_at=3)])
        with store.write() as writing:
            assert writing.compact(THEN).tasks == 2
        with store.read() as reading:
            for name, status in (("old", Status.DONE), ("gone", Status.CANCELED)):
                shrunk = reading.task(name)
                assert shrunk is not None
                assert (shrunk.id, shrunk.status, shrunk.depth) == (name, status, 2)
                assert (shrunk.prompt, shrunk.title, shrunk.reason) == ("", "", "")
                assert (shrunk.env, "x" in shrunk.meta) == ({}, False)
                assert reading.attempts(name) == []
            assert reading.statuses(["old", "gone"]) == {
                "old": Status.DONE,
                "gone": Status.CANCELED,
            }
            assert reading.task("young") == young.task
            assert len(reading.attempts("young")) == 1
            assert [each.fence for each, _ in reading.ended_attempts(0, 9)] == [2]
            assert reading.placed("a") == ready("a", 4, **said)
        assert store.check() == []

    def test_what_is_compacted_is_not_compacted_again(self, store: Store) -> None:
        put(store, ended("old", 1, 5, prompt="p"))
        for count in (1, 0):
            with store.write() as writing:
                assert writing.compact(THEN).tasks == count

    def test_a_compacted_id_is_never_new(self, store: Store) -> None:
        put(store, ended("old", 1, 5))
        with store.write() as writing:
            writing.compact(THEN)
        with pytest.raises(Refused):
            put(store, ready("old", 2))

    def test_what_an_unfinished_task_names_is_kept_whole(self, store: Store) -> None:
        kept = [ended(name, seq, 5, prompt="p") for seq, name in enumerate("abcd", 1)]
        parked = change(ready("s", 12, parent="d"), status=Status.PARKED)
        put(
            store,
            *kept,
            waits("q", 10, "needs", needs=("a", "x")),
            ready("r", 11, parent="b"),
            parked,
            ended("t", 13, 6, needs=("c",)),
        )
        with store.write() as writing:
            assert writing.compact(THEN).tasks == 2
        with store.read() as reading:
            prompts = {name: held.prompt for name, held in reading.tasks("abcd").items()}
            assert prompts == {"a": "p", "b": "p", "c": "", "d": "p"}

    def test_old_events_go_and_numbers_go_on(self, store: Store) -> None:
        with store.write() as writing:
            writing.log([Event(0, THEN + n, "e", "a") for n in range(-3, 1)])
            assert writing.compact(THEN).events == 3
            assert numbers(writing.events()) == [4]
            assert numbers(writing.events(task="a", last=True)) == [4]
            writing.compact(THEN + 99)
        with store.write() as writing:
            assert writing.events() == []
            assert writing.log([Event(0, 1, "e", "a")]) == 5

    def test_old_decisions_go_unless_a_younger_one_builds_on_them(self, store: Store) -> None:
        with store.write() as writing:
            writing.put(PolicyText("d1", "text"))
            for number, at, base in ((1, 1, 1), (2, 2, 1), (3, 3, 3), (4, THEN, 3)):
                writing.put_decision(decision(number, at, base))
            assert writing.compact(THEN).decisions == 2
        with store.read() as reading:
            assert numbers_of(reading) == [3, 4]
            assert reading.table(PolicyText)["d1"].text == "text"

    def test_a_policy_that_no_decision_names_goes_even_where_it_was_read(
        self, store: Store
    ) -> None:
        with store.write() as writing:
            writing.put(PolicyText("d1", "text"))
        with store.read() as reading:
            assert set(reading.table(PolicyText)) == {"d1"}
        with store.write() as writing:
            writing.compact(THEN)
        with store.read() as reading:
            assert reading.table(PolicyText) == {}

    def test_old_minutes_become_days(self, store: Store) -> None:
        midnight = THEN - THEN % DAY
        minutes = [midnight - 2 * DAY, midnight - 2 * DAY + HOUR, midnight - HOUR, midnight + HOUR]
        with store.write() as writing:
            for scope in ("all", "all:x", "pool:y"):
                writing.book([Booking(scope, at, (1, 2, 3, 4), 5, 6, 7) for at in minutes])
            before = total(writing, "all"), total(writing, "pool:y")
            writing.compact(THEN)
        with store.read() as reading:
            assert (total(reading, "all"), total(reading, "pool:y")) == before
            assert [row.minute for row in reading.usage("all", None)] == [
                midnight - 2 * DAY,
                midnight - DAY,
                midnight + HOUR,
            ]
            assert reading.usage("all", None)[0].tokens == (2, 4, 6, 8)
        with store.write() as writing:
            writing.book([Booking("all", minutes[1], usd=1)])
            writing.compact(THEN)
            assert total(writing, "all").usd == before[0].usd + 1
            assert len(writing.usage("all", None)) == 3

    def test_compacting_is_undone_with_its_transaction(self, store: Store) -> None:
        old = ended("old", 1, 5, prompt="p")
        put(store, old)
        with store.write() as writing:
            writing.put_attempts([attempt(old, 1, ended_at=3)])
            writing.log([Event(0, 1, "e", "old")])
            writing.book([Booking("all", HOUR, usd=1), Booking("all", 2 * HOUR, usd=1)])
        with undone(store) as writing:
            writing.compact(THEN)
            assert writing.events() == []
        with store.read() as reading:
            assert reading.placed("old") == old
            assert len(reading.attempts("old")) == 1
            assert numbers(reading.events(task="old")) == [1]
            assert len(reading.usage("all", None)) == 2

    def test_tallies_and_names_stay_right(self, store: Store) -> None:
        put(store, ready("r", 9), ended("a", 1, 5, parent="r"), ended("b", 2, THEN, parent="r"))
        with store.write() as writing:
            writing.compact(THEN)
        put(store, ready("c", 10, parent="r"))
        with store.read() as reading:
            queued = [tally.count for tally in reading.tallies() if tally.status == "queued"]
            assert queued == [2]
        assert store.check() == []


def numbers_of(reading: Reading) -> list[int]:
    """The numbers of the decisions that are kept."""
    return [row.number for row in reading.decisions()]
