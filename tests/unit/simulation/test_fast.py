"""What the fast engine keeps beside the store: it never differs from what the store has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.model.instant import MINUTE
from fairlane.model.project import Pause, Project
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.reports.fairness import behind, lags
from fairlane.simulation.fast.memory import WatchedStore
from fairlane.store.base import Booking, Placed
from fairlane.store.memory.store import MemoryStore
from tests.unit.simulation.fixed import BEGIN

PROJECTS = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.none() | st.integers(-(10**13), 10**13)),
    max_size=6,
)


class Undone(Exception):
    """Ends a transaction without a trace."""


def fill(store: MemoryStore) -> None:
    with store.write() as tx:
        tx.put(Project("web", weight=2, clock=5), Pause("kind:code"))
        ready = Task("a", 1, "web", created_at=BEGIN, ready_since=BEGIN)
        later = Task("b", 2, "web", created_at=BEGIN, not_before=BEGIN + MINUTE)
        tx.insert([Placed(ready), Placed(later, "not_before", BEGIN + MINUTE)])
        tx.put_value("clock", 7)
        tx.book([Booking("project:web", BEGIN, (1, 2, 3, 4), starts=1)])


def change(store: MemoryStore) -> None:
    with store.write() as tx:
        tx.put(Project("web", weight=9, clock=6), Project("new", clock=0))
        tx.drop(Pause, "kind:code")
        tx.save([Placed(Task("b", 2, "web", created_at=BEGIN, ready_since=BEGIN))])
        tx.put_value("clock", 8)
        tx.put_value("batch", {"since": 1, "started": 2})
        tx.book([Booking("project:web", BEGIN, (1, 2, 3, 4), starts=1)])
        raise Undone


def seen(store: MemoryStore) -> list[object]:
    with store.read() as reading:
        return [
            reading.table(Project), reading.table(Pause), reading.wait_counts(),
            reading.value("clock"), reading.value("batch"), reading.usage_sums("", 0),
            reading.lanes("ready", 9), reading.statuses(["a", "b"]),
        ]  # fmt: skip


def test_a_transaction_that_is_undone_leaves_no_trace():
    plain, watched = MemoryStore(), WatchedStore()
    for store in (plain, watched):
        fill(store)
        before = seen(store)
        with pytest.raises(Undone):
            change(store)
        assert seen(store) == before
    assert seen(watched) == seen(plain)


def test_a_table_that_was_read_is_nobody_elses():
    store = WatchedStore()
    fill(store)
    with store.read() as reading:
        reading.table(Project).clear()
        assert set(reading.table(Project)) == {"default", "web"}


def test_news_name_lanes_flights_and_scopes_once():
    store = WatchedStore()
    fill(store)
    news = store.memory.watch()
    assert {key.project for key in news.lanes} == {"web"}
    news.lanes.clear()
    with store.transaction as tx:
        (task,) = tx.tasks(["a"]).values()
        tx.save([Placed(Task("a", 1, "web", created_at=BEGIN, status=Status.LEASED, attempts=1))])
    assert news.lanes == {task.lane}
    assert news.flights == {"a"}
    store.memory.forget(news)
    news.flights.clear()
    with store.transaction as tx:
        tx.save([Placed(task)])
    assert not news.flights


@given(PROJECTS, st.sampled_from(["balanced", "fair-share"]))
def test_all_lags_are_those_of_each(rows, preset):
    projects = {
        f"p{n}": Project(f"p{n}", weight=weight, present=present, clock=clock)
        for n, (weight, present, clock) in enumerate(rows)
    }
    policy = Policy.preset(preset)
    gaps = {name: behind(project, projects, policy) for name, project in projects.items()}
    assert lags(projects, policy) == {name: gap.lag for name, gap in gaps.items() if gap}
