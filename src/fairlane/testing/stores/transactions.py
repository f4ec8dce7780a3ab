"""Cases: all or nothing, one after another, and what a view sees."""

from __future__ import annotations

from threading import Event as Flag
from threading import Thread
from typing import Any

from fairlane.model.event import Event
from fairlane.model.instant import MINUTE
from fairlane.model.project import Group, History, Pause, PolicyText, Pool, Project, WorkerRow
from fairlane.model.task import Status
from fairlane.store.base import Booking, Filter, Reading, Store, Writing
from fairlane.testing.stores.builders import (
    attempt,
    change,
    counted,
    ended,
    put,
    ready,
    save,
    start,
    undone,
    waits,
)
from fairlane.testing.stores.small_tables import decision


def world(reading: Reading) -> dict[str, Any]:
    """Every answer that a view gives."""
    listed = reading.listing(Filter())
    names = [placed.task.id for placed in listed]
    lanes = {age: reading.lanes(age, 100) for age in ("ready", "created")}
    return {
        "tasks": listed,
        "in flight": reading.in_flight(),
        "due": reading.due(1 << 60, 1000),
        "dependents": {name: reading.dependents(name) for name in names},
        "children": {name: reading.children(name) for name in names},
        "tallies": counted(reading.tallies()),
        "lanes": {
            (age, lane.key): (lane.count, lane.in_order(age))
            for age, answers in lanes.items()
            for lane in answers
        },
        "wait counts": sorted(reading.wait_counts(), key=lambda each: each.code),
        "attempts": {name: reading.attempts(name) for name in names},
        "open": reading.open_attempts(),
        "ended": reading.ended_attempts(-(1 << 60), 1000),
        "usage": {scope: reading.usage(scope, None) for scope in reading.usage_sums("", 0)},
        "projects": reading.table(Project),
        "groups": reading.table(Group),
        "pools": reading.table(Pool),
        "workers": reading.table(WorkerRow),
        "pauses": reading.table(Pause),
        "events": reading.events(),
        "decisions": reading.decisions(),
        "value": reading.value("v"),
        "policy": reading.table(PolicyText),
        "history": reading.table(History),
    }


def write_everything(writing: Writing, seq: int) -> None:
    """A little of each sort, new at every seq."""
    name = f"t{seq}"
    made = ready(name, seq, kind=f"k{seq}", locks=("l",))
    writing.put(Project(f"p{seq}"))
    writing.insert([made, waits(f"w{seq}", seq + 1, "needs", 5 * seq, needs=(name,), parent=name)])
    writing.save([change(made, status=Status.LEASED, attempts=1)])
    writing.put_attempts([attempt(made, writing.number("fence"), number=1)])
    writing.log([Event(0, seq, "added", name), Event(0, seq, "leased", name)])
    writing.book([Booking("all", MINUTE, (1, 1, 1, 1), 1), Booking(f"s{seq}", MINUTE, usd=1)])
    writing.put_clocks({"default": (seq, True)})
    writing.put(Group(f"g{seq}"))
    writing.put(Pool("x", seq))
    writing.put(WorkerRow("w", seen_at=seq))
    writing.put(Pause("all", f"by{seq}"))
    writing.put(PolicyText("d1", f"text {seq}"))
    writing.put_decision(decision(seq))
    writing.put_value("v", seq)


class TransactionCases:
    """Undone, seen, durable, in turn."""

    def test_an_exception_undoes_everything(self, store: Store) -> None:
        with store.write() as writing:
            write_everything(writing, 1)
        with store.read() as reading:
            before, mark = world(reading), reading.mark()
        with undone(store) as writing:
            write_everything(writing, 10)
            writing.save([waits("w1", 2, "source", parent="t10", kind="z")], content=True)
            writing.drop(Project, "p1")
            writing.drop(Pause, "all")
            writing.drop(WorkerRow, "w")
            writing.put_value("v", None)
            assert world(writing) != before
        with store.read() as reading:
            assert world(reading) == before
            assert reading.mark() == mark
        with store.write() as writing:
            assert writing.log([Event(0, 1, "e")]) == 3
            write_everything(writing, 20)
        assert store.check() == []

    def test_transactions_that_share_a_commit_see_each_other_and_fail_alone(
        self, store: Store
    ) -> None:
        with store.sharing():
            with store.write() as writing:
                write_everything(writing, 1)
            with store.read() as reading:
                between = world(reading)
            with undone(store) as writing:
                write_everything(writing, 10)
            with store.read() as reading:
                assert world(reading) == between
            with store.write() as writing:
                writing.put_value("after", 1)
        with store.read() as reading:
            assert reading.value("after") == 1
            assert world(reading) == between
        assert store.check() == []

    def test_a_store_that_is_whole_is_not_refused(self, store: Store) -> None:
        for fully in (True, False):
            store.verify(fully)
            with store.write() as writing:
                write_everything(writing, 10 * fully + 1)
            store.verify(fully)
        with store.sharing():
            put(store, ready("a", 50))
        store.verify()

    def test_an_undone_task_can_be_inserted(self, store: Store) -> None:
        with undone(store) as writing:
            writing.insert([ready("a", 1)])
        put(store, ready("a", 1))
        with store.read() as reading:
            assert reading.placed("a") == ready("a", 1)

    def test_a_transaction_sees_what_it_wrote(self, store: Store) -> None:
        with store.write() as writing:
            write_everything(writing, 1)
            inside = world(writing)
        with store.read() as reading:
            assert world(reading) == inside
            assert inside["wait counts"][0].tasks == ("w1",)
            assert [each.id for each in inside["in flight"]] == ["t1"]

    def test_many_changes_of_one_task_in_a_transaction(self, store: Store) -> None:
        a = ready("a", 1)
        with store.write() as writing:
            writing.insert([a])
            writing.save([waits("a", 1, "backoff", 5)])
            writing.save([change(a, failures=1)])
            assert [lane.key.failures for lane in writing.lanes("ready", 1)] == [1]
            writing.save([change(a, failures=2), change(a, failures=3)])
            assert [tally.count for tally in writing.tallies()] == [1]
        with store.read() as reading:
            assert [lane.key.failures for lane in reading.lanes("ready", 1)] == [3]
        assert store.check() == []

    def test_only_writing_makes_a_new_version(self, store: Store) -> None:
        with store.read() as reading:
            first = reading.mark()
        with store.write() as writing:
            writing.tallies()
        with store.read() as reading:
            assert reading.mark() == first
        marks = [first]
        for seq in (1, 2):
            put(store, ready(f"t{seq}", seq))
            with store.read() as reading:
                marks.append(reading.mark())
        with store.write() as writing:
            writing.put_value("v", 1)
        with store.read() as reading:
            marks.append(reading.mark())
        assert marks == sorted(set(marks))

    def test_a_view_does_not_change_while_it_is_read(self, store: Store) -> None:
        """A writer is not seen, or has to wait; either way the view stays as it was."""
        put(store, ready("a", 1))
        ready_to_write = Flag()

        def write() -> None:
            ready_to_write.set()
            save(store, ended("a", 1, 9))

        writer = Thread(target=write)
        with store.read() as reading:
            before = world(reading)
            writer.start()
            assert ready_to_write.wait(10)
            writer.join(0.05)
            assert world(reading) == before
        writer.join(10)
        assert not writer.is_alive()
        with store.read() as reading:
            assert reading.statuses(["a"]) == {"a": Status.DONE}

    def test_threads_take_turns(self, store: Store) -> None:
        numbers: list[int] = []

        def work(first: int) -> None:
            for seq in range(first, first + 20):
                with store.write() as writing:
                    numbers.append(writing.number("fence"))
                    writing.insert([ready(f"t{seq}", seq)])
                    writing.log([Event(0, seq, "added", f"t{seq}")])

        threads = [Thread(target=work, args=(first,)) for first in (100, 200, 300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(set(numbers)) == 60
        with store.read() as reading:
            assert [event.number for event in reading.events()] == list(range(1, 61))
            assert reading.lanes("ready", 1)[0].count == 60
        assert store.check() == []

    def test_a_good_store_is_content(self, store: Store) -> None:
        assert store.check() == []
        a, b = ready("a", 1), ready("b", 2)
        put(store, a, b, waits("c", 3, "needs", 5, needs=("a",)), ended("d", 4, 9))
        start(store, a)
        save(store, change(b, failures=1))
        assert store.check() == []
