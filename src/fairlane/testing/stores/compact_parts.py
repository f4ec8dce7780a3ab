"""Cases: a compaction in parts; each is a transaction, and whoever comes next goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairlane.model.event import Event
from fairlane.model.instant import DAY, HOUR
from fairlane.model.project import PolicyText
from fairlane.store.base import Booking, Compacted, Place, Reading, Store
from fairlane.testing.stores.builders import attempt, ended, put, ready, undone
from fairlane.testing.stores.small_tables import decision, numbers

THEN = 100 * DAY + 5 * HOUR
SCOPES = ("all", "pool:x", "project:a", "project:b")
TASKS, EVENTS, MINUTES, LIMIT = 10, 30, 7, 3
DECISIONS = ((1, 1, 1), (2, 2, 1), (3, 3, 3), (4, 9, 4), (5, 9, 4), (6, THEN, 4))


def fill(store: Store) -> None:
    """What is old and what is not, of everything."""
    old = [ended(f"t{n}", n, 50 + n % 3, prompt="p", attempts=1) for n in range(1, TASKS + 1)]
    naming = ready("names", 99, needs=("t1", "t2", "t3", "t4"))
    put(store, *old, naming, ended("young", 98, THEN, prompt="p"))
    with store.write() as writing:
        writing.number("fence", TASKS)
        writing.put_attempts([attempt(row, row.task.seq, number=1, ended_at=9) for row in old])
        writing.log([Event(0, 1 if n % 5 else THEN, "e", "t1") for n in range(EVENTS)])
        writing.put(PolicyText("d1", "text"))
        for row in DECISIONS:
            writing.put_decision(decision(*row))
        for scope in SCOPES:
            hours = range(1, MINUTES + 1)
            writing.book([Booking(scope, 98 * DAY + n * HOUR, (n, 0, 0, 1), n) for n in hours])
            writing.book([Booking(scope, 100 * DAY + HOUR, (1, 1, 1, 1), 1, 1, 1)])


def parts(store: Store, limit: int = LIMIT, place: Place = ()) -> Iterator[Compacted]:
    """Every part, each in a transaction of its own."""
    rest: Place | None = place
    while rest is not None:
        with store.write() as writing:
            done = writing.compact(THEN, rest, limit)
        assert done.rest is None or done.rest != rest
        rest = done.rest
        yield done


def sums(reading: Reading) -> dict[str, Booking]:
    """Everything that was ever used."""
    return reading.usage_sums("", 0)


def of(store: Store, ask: Callable[[Reading], object]) -> object:
    """One answer."""
    with store.read() as reading:
        return ask(reading)


class CompactPartsCases:
    """All parts together, and each by itself."""

    def test_all_parts_together_do_what_one_does(self, store: Store) -> None:
        fill(store)
        done = list(parts(store))
        assert sum(part.tasks for part in done) == TASKS - 4
        assert sum(part.events for part in done) == EVENTS - EVENTS // 5
        assert sum(part.decisions for part in done) == 3
        with store.read() as reading:
            prompts = {
                name: task.prompt
                for name, task in reading.tasks(["t1", "t4", "t5", "young"]).items()
            }
            assert prompts == {"t1": "p", "t4": "p", "t5": "", "young": "p"}
            assert (len(reading.attempts("t1")), reading.attempts("t5")) == (1, [])
            assert numbers(reading.events()) == list(range(1, EVENTS + 1, 5))
            assert [row.number for row in reading.decisions()] == [4, 5, 6]
            for scope in SCOPES:
                days = [row.minute for row in reading.usage(scope, None)]
                assert days == [98 * DAY, 100 * DAY + HOUR]
        with store.write() as writing:
            assert writing.compact(THEN) == Compacted(0, 0, 0)
        assert store.check() == []

    def test_a_part_changes_few_rows_and_is_whole(self, store: Store) -> None:
        fill(store)
        used = of(store, sums)
        for part in parts(store):
            assert part.tasks + part.events <= LIMIT
            assert part.decisions <= 3  # a run of the same base goes as a whole
            assert of(store, sums) == used
            assert store.check() == []
            with store.read() as reading:
                kept = {row.number for row in reading.decisions()}
                assert {row.base for row in reading.decisions()} <= kept

    def test_each_part_is_undone_with_its_transaction(self, store: Store) -> None:
        fill(store)
        rest: Place | None = ()
        used = of(store, sums)
        while rest is not None:
            with undone(store) as writing:
                tried = writing.compact(THEN, rest, LIMIT)
            assert of(store, sums) == used
            with store.write() as writing:
                assert writing.compact(THEN, rest, LIMIT) == tried
            rest = tried.rest
        assert store.check() == []

    def test_what_comes_between_two_parts_stays(self, store: Store) -> None:
        fill(store)
        for at, _ in enumerate(parts(store)):
            with store.write() as writing:
                writing.book([Booking("all", THEN + at, usd=1)])
                writing.log([Event(0, THEN + at, "between")])
        with store.read() as reading:
            assert len(reading.events(kind="between")) == at + 1
            assert len(reading.usage("all", THEN)) == at + 1

    def test_a_part_of_one_row_comes_to_an_end(self, store: Store) -> None:
        fill(store)
        assert sum(part.tasks for part in parts(store, limit=1)) == TASKS - 4

    def test_what_is_named_still_is_looked_at_once(self, store: Store) -> None:
        old = [ended(f"t{n}", n, n) for n in range(1, 8)]
        put(store, *old, *[ready(f"r{n}", 50 + n, parent=f"t{n}") for n in range(1, 8)])
        done = list(parts(store, limit=2))
        assert [part.tasks for part in done] == [0] * len(done)
        assert len(done) == 4

    def test_a_place_that_was_read_from_json_is_a_place(self, store: Store) -> None:
        fill(store)
        with store.write() as writing:
            part = writing.compact(THEN, (), LIMIT)
            writing.put_value("place", part.rest)
        with store.write() as writing:
            assert tuple(writing.value("place")) == part.rest
