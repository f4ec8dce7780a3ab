"""Cases: what a store says of what has changed."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.model.event import Event
from fairlane.model.instant import DAY, HOUR, MINUTE
from fairlane.model.project import Group, History, Pause, Pool, Project, WorkerRow
from fairlane.model.record import replace
from fairlane.model.task import LaneKey, Status
from fairlane.store.base import Booking, Store, Writing
from fairlane.store.news import VALUES, Mark, News
from fairlane.testing.stores.builders import (
    change,
    end,
    ended,
    put,
    ready,
    save,
    start,
    undone,
    waits,
)

CODE = LaneKey()
PLAN = CODE._replace(kind="plan")


def seen(store: Store) -> Mark:
    """What has been seen by now."""
    with store.read() as reading:
        return reading.mark()


def since(store: Store, mark: Mark) -> News:
    """What has changed."""
    with store.read() as reading:
        return reading.news(mark)


def after(store: Store, write: Callable[[Writing], object]) -> News:
    """What one transaction has changed."""
    before = seen(store)
    with store.write() as writing:
        write(writing)
    return since(store, before)


class NewsCases:
    """Every write is told of, what is undone is not, and who asks too late reads all again."""

    def test_nothing_changed(self, store: Store) -> None:
        put(store, ready("a", 1))
        mark = seen(store)
        with store.write() as writing:
            writing.tallies()
        news = since(store, mark)
        assert news.is_empty
        assert news.mark == mark

    def test_the_mark_of_news_is_that_of_the_view(self, store: Store) -> None:
        put(store, ready("a", 1))
        mark = seen(store)
        put(store, ready("b", 2))
        news = since(store, mark)
        assert news.mark == seen(store) > mark
        assert since(store, news.mark).is_empty

    def test_new_tasks(self, store: Store) -> None:
        put(store, ready("a", 1))
        news = after(store, lambda tx: tx.insert([ready("b", 2, kind="plan")]))
        assert (news.lanes, news.flights, news.waits) == ({PLAN}, set(), False)
        news = after(store, lambda tx: tx.insert([waits("c", 3, "needs", needs=("a",))]))
        assert (news.lanes, news.waits) == (set(), True)

    def test_a_task_that_moves_changes_both_lanes(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a, ready("b", 2))
        assert after(store, lambda tx: tx.save([a])).lanes == {CODE}
        moved = change(a, kind="plan")
        assert after(store, lambda tx: tx.save([moved], content=True)).lanes == {CODE, PLAN}

    def test_a_lane_that_ends(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        mark = seen(store)
        start(store, a)
        assert since(store, mark).lanes == {CODE}
        put(store, ready("b", 2, kind="plan"))
        assert since(store, mark).lanes == {CODE, PLAN}

    def test_a_life_of_an_attempt(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a, ready("b", 2))
        mark = seen(store)
        leased, held = start(store, a)
        assert since(store, mark).flights == {"a"}
        renewed = replace(held, expires_at=held.expires_at + 1)
        assert after(store, lambda tx: tx.put_attempts([renewed])).flights == {"a"}
        running = change(leased, status=Status.RUNNING)
        assert after(store, lambda tx: tx.save([running])).flights == {"a"}
        news = after(store, lambda tx: tx.put_attempts([end(held, 200)]))
        assert news.flights == {"a"}
        news = after(store, lambda tx: tx.save([a]))
        assert (news.flights, news.lanes) == ({"a"}, {CODE})

    def test_what_tasks_wait_for(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        assert after(store, lambda tx: tx.save([waits("a", 1, "backoff", 9)])).waits
        assert after(store, lambda tx: tx.save([waits("a", 1, "backoff", 12)])).waits
        assert after(store, lambda tx: tx.save([a])).waits
        parked = change(a, status=Status.PARKED)
        assert after(store, lambda tx: tx.save([parked._replace(due_at=20)])).waits
        assert after(store, lambda tx: tx.save([parked])).waits

    def test_what_is_booked(self, store: Store) -> None:
        news = after(store, lambda tx: tx.book([Booking("all", MINUTE, usd=1)]))
        assert news == News(news.mark, scopes={"all"})

    def test_rows_of_small_tables(self, store: Store) -> None:
        rows = (Project("p"), Group("g"), Pool("x"), WorkerRow("w"), Pause("all"))
        news = after(store, lambda tx: tx.put(*rows, History("p", "code", None, 1, 1, 1)))
        assert [news.rows(Project), news.rows(Group), news.rows(Pool)] == [{"p"}, {"g"}, {"x"}]
        assert [news.rows(WorkerRow), news.rows(Pause)] == [{"w"}, {"all"}]
        assert len(news.rows(History)) == 1
        assert after(store, lambda tx: tx.drop(Pause, "all")).rows(Pause) == {"all"}
        assert after(store, lambda tx: tx.put_clocks({"p": (5, True)})).rows(Project) == {"p"}

    def test_values(self, store: Store) -> None:
        news = after(store, lambda tx: tx.put_value("v", 1))
        assert news == News(news.mark, tables={VALUES: {"v"}})
        assert after(store, lambda tx: tx.put_value("v", None)).tables == {VALUES: {"v"}}

    def test_what_nobody_plans_with_is_a_version_without_names(self, store: Store) -> None:
        mark = seen(store)
        news = after(store, lambda tx: tx.log([Event(0, 1, "e")]))
        assert news.is_empty
        assert news.mark > mark

    def test_several_transactions(self, store: Store) -> None:
        a, b = ready("a", 1), ready("b", 2, kind="plan")
        put(store, a, b)
        mark = seen(store)
        start(store, a)
        middle = seen(store)
        start(store, b)
        assert since(store, mark).flights == {"a", "b"}
        assert since(store, middle).flights == {"b"}
        assert since(store, middle).lanes == {PLAN}

    def test_a_mark_of_long_ago_that_is_asked_again(self, store: Store) -> None:
        a, b = ready("a", 1), ready("b", 2, kind="plan")
        put(store, a, b)
        mark = seen(store)
        for _ in range(40):
            save(store, a)
        assert since(store, mark).lanes == {CODE}
        middle = seen(store)
        start(store, b)
        for _ in range(2):
            news = since(store, mark)
            assert (news.lanes, news.flights) == ({CODE, PLAN}, {"b"})
            assert since(store, middle).lanes == {PLAN}
        with undone(store) as writing:
            writing.insert([ready("c", 3, kind="review")])
        assert since(store, mark).lanes == {CODE, PLAN}

    def test_a_transaction_is_told_of_itself(self, store: Store) -> None:
        put(store, ready("a", 1))
        with store.write() as writing:
            mark = writing.mark()
            assert writing.news(mark).is_empty
            writing.insert([ready("b", 2, kind="plan")])
            news = writing.news(mark)
            assert (news.lanes, news.mark) == ({PLAN}, mark)
            assert len(writing.lanes("ready", 1)) == 2
            assert writing.news(mark).lanes == {PLAN}
        assert since(store, mark).lanes == {PLAN}

    def test_what_is_undone_is_no_news(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        mark = seen(store)
        with undone(store) as writing:
            writing.save([change(a, status=Status.CANCELED, ended_at=3)])
        assert since(store, mark).is_empty
        assert seen(store) == mark

    def test_who_was_told_of_what_is_undone_reads_all_again(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        mark = seen(store)
        with undone(store) as writing:
            writing.save([change(a, status=Status.CANCELED, ended_at=3)])
            assert writing.news(mark).lanes == {CODE}
        assert since(store, mark).anything
        put(store, ready("b", 2))
        assert since(store, mark).anything

    def test_transactions_of_one_commit(self, store: Store) -> None:
        a, b = ready("a", 1), ready("b", 2, kind="plan")
        put(store, a, b)
        mark = seen(store)
        with store.sharing():
            start(store, a)
            assert since(store, mark).flights == {"a"}
            with undone(store) as writing:
                writing.save([change(b, status=Status.CANCELED, ended_at=3)])
            start(store, b)
        assert since(store, mark).flights == {"a", "b"}

    def test_what_a_compaction_shrinks_is_news_only_where_usage_is_folded(
        self, store: Store
    ) -> None:
        put(store, ready("a", 1), ended("b", 2, 3, prompt="p"))
        assert not after(store, lambda tx: tx.compact(5)).flights
        with store.write() as writing:
            writing.book([Booking("all", MINUTE, usd=1), Booking("web", DAY + MINUTE, usd=1)])
        news = after(store, lambda tx: tx.compact(DAY + HOUR))
        assert news.anything or news.scopes == {"all"}

    def test_who_asks_too_late_reads_all_again(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        first = seen(store)
        save(store, a)
        second = seen(store)
        for _ in range(1000):
            save(store, a)
        assert not since(store, second).anything
        for _ in range(500):
            save(store, a)
        assert since(store, first).anything
        assert since(store, Mark(-1, -1)).anything
        assert since(store, seen(store)).is_empty

    def test_open_attempts_of_some_tasks(self, store: Store) -> None:
        a, b, c = ready("a", 1), ready("b", 2), ready("c", 3)
        put(store, a, b, c)
        held = [start(store, placed)[1] for placed in (a, b)]
        with store.write() as writing:
            writing.put_attempts([end(held[1], 300)])
        with store.read() as reading:
            assert reading.open_attempts(["c", "a", "a", "none", "b"]) == held[:1]
            assert reading.open_attempts([]) == []
