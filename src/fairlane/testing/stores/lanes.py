"""Cases: the queue in the order in which the planner reads it."""

from __future__ import annotations

from typing import Any

from fairlane.model.snapshot import WaitCount
from fairlane.model.task import Lane, LaneKey, Status
from fairlane.store.base import Reading, Store
from fairlane.testing.stores.builders import (
    change,
    end,
    ended,
    names,
    put,
    ready,
    save,
    start,
    waits,
)

KEY = LaneKey()


def keys(reading: Reading) -> dict[LaneKey, int]:
    """Every lane with its count."""
    lanes = reading.lanes("ready", 1)
    counts = {lane.key: lane.count for lane in lanes}
    assert len(counts) == len(lanes)
    return counts


def one_lane(reading: Reading, key: LaneKey, age_from: str, window: int) -> Lane | None:
    """The lane of a key, if it has a task."""
    return next(iter(reading.lanes(age_from, window, [key])), None)


class LaneCases:
    """Lanes, their windows, their changes, and the tasks that stand outside."""

    def test_an_empty_store_has_no_lane(self, store: Store) -> None:
        with store.read() as reading:
            assert reading.lanes("ready", 5) == ()
            assert one_lane(reading, KEY, "ready", 5) is None
            assert reading.wait_counts() == ()
            assert reading.tallies() == []
            assert reading.next_due() is None

    def test_a_lane_is_read_in_the_order_of_both_ages(self, store: Store) -> None:
        put(
            store,
            ready("a", 1, created_at=30, ready_since=30, estimate_tokens=7),
            ready("b", 2, created_at=20, ready_since=40),
            ready("c", 3, created_at=10, ready_since=50),
            ready("d", 4, created_at=20, ready_since=30),
        )
        with store.read() as reading:
            (by_ready,) = reading.lanes("ready", 10)
            (by_created,) = reading.lanes("created", 10)
            assert by_ready.key == KEY
            assert names(by_ready, "ready") == ["a", "d", "b", "c"]
            assert names(by_created, "created") == ["c", "b", "d", "a"]
            assert by_ready.in_order("ready")[0] == ("a", 1, 30, 30, 7)

    def test_a_window_holds_the_oldest(self, store: Store) -> None:
        count = 40
        put(
            store, *(ready(f"t{n}", n, created_at=99, ready_since=100 - n) for n in range(1, count))
        )
        with store.read() as reading:
            for window in (1, 2, 39, 100):
                lane = one_lane(reading, KEY, "ready", window)
                assert lane is not None
                assert lane.count == count - 1
                assert names(lane) == [f"t{n}" for n in range(count - 1, 0, -1)][:window]
                lane = one_lane(reading, KEY, "created", window)
                assert names(lane, "created") == [f"t{n}" for n in range(1, count)][:window]
                assert reading.lanes("created", window)[0].count == count - 1

    def test_every_part_of_the_key_makes_a_lane(self, store: Store) -> None:
        fields: dict[str, Any] = {
            "project": "p", "kind": "review", "priority": 5, "depth": 1, "failures": 1,
            "agent": "codex", "pool": "team", "parallel": True, "locks": ("b", "a", "a"),
            "workspace": "w", "labels": ("x", "gpu"), "group": "g",
        }  # fmt: skip
        for seq, (name, value) in enumerate(fields.items(), 1):
            put(store, ready(f"t{seq}", seq, **{name: value}))
        put(store, ready("plain", 50), ready("not", 51, parallel=False))
        with store.read() as reading:
            counts = keys(reading)
            for name, value in fields.items():
                wanted: Any = tuple(sorted(set(value))) if isinstance(value, tuple) else value
                assert LaneKey(**{name: wanted}) in counts, name
            assert KEY in counts
            assert KEY._replace(parallel=False) in counts
            assert set(counts.values()) == {1}
            assert len(counts) == len(fields) + 2
            for key in counts:
                assert one_lane(reading, key, "ready", 1) is not None

    def test_a_lane_ends_with_its_last_task_and_comes_back(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, a)
        leased, held = start(store, a)
        with store.read() as reading:
            assert keys(reading) == {}
            assert one_lane(reading, KEY, "ready", 1) is None
        with store.write() as writing:
            writing.put_attempts([end(held, 999)])
            writing.save([change(leased, status=Status.QUEUED)])
        with store.read() as reading:
            assert keys(reading) == {KEY: 1}
            assert names(one_lane(reading, KEY, "ready", 1)) == ["a"]

    def test_a_task_moves_between_lanes(self, store: Store) -> None:
        a, b = ready("a", 1), ready("b", 2)
        put(store, a, b)
        failed = change(a, failures=1)
        save(store, failed)
        with store.read() as reading:
            assert keys(reading) == {KEY: 1, KEY._replace(failures=1): 1}
        with store.write() as writing:
            writing.save([change(failed, priority=3, labels=("gpu",))], content=True)
        key = KEY._replace(failures=1, priority=3, labels=("gpu",))
        with store.read() as reading:
            assert keys(reading) == {KEY: 1, key: 1}
            assert names(one_lane(reading, key, "ready", 2)) == ["a"]

    def test_a_changed_age_changes_the_order(self, store: Store) -> None:
        a, b = ready("a", 1), ready("b", 2)
        put(store, a, b)
        save(store, change(a, ready_since=9, created_at=9))
        with store.read() as reading:
            assert names(one_lane(reading, KEY, "ready", 2)) == ["b", "a"]
            assert names(one_lane(reading, KEY, "created", 2), "created") == ["b", "a"]

    def test_only_ready_tasks_are_in_lanes(self, store: Store) -> None:
        a, b = ready("a", 1), ready("b", 2)
        parked = change(ready("p", 6), status=Status.PARKED)
        put(store, a, b, waits("w", 3, "needs", needs=("a",)), ended("d", 4, 9), parked)
        start(store, a)
        with store.read() as reading:
            assert keys(reading) == {KEY: 1}
            assert names(one_lane(reading, KEY, "ready", 9)) == ["b"]

    def test_a_waiting_task_enters_and_leaves(self, store: Store) -> None:
        a = ready("a", 1)
        put(store, waits("a", 1, "not_before", 50))
        save(store, a)
        with store.read() as reading:
            assert keys(reading) == {KEY: 1}
            assert reading.wait_counts() == ()
            assert reading.next_due() is None
        save(store, waits("a", 1, "backoff", 60))
        with store.read() as reading:
            assert keys(reading) == {}
            assert reading.wait_counts() == (WaitCount("backoff", 1, ("a",), 60),)

    def test_wait_counts(self, store: Store) -> None:
        put(store, *(waits(f"n{n}", n, "needs", needs=("x",)) for n in range(9, 0, -1)))
        put(
            store,
            waits("b1", 20, "backoff", 900),
            waits("b2", 21, "backoff", 300),
            waits("b3", 22, "backoff", 600),
            waits("s", 23, "source"),
            change(ready("p", 24), status=Status.PARKED),
        )
        with store.read() as reading:
            assert sorted(reading.wait_counts(), key=lambda count: count.code) == [
                WaitCount("backoff", 3, ("b1", "b2", "b3"), 300),
                WaitCount("needs", 9, ("n1", "n2", "n3", "n4", "n5"), None),
                WaitCount("source", 1, ("s",), None),
            ]
        save(store, waits("b2", 21, "source"))
        with store.read() as reading:
            assert {count.code: count.until for count in reading.wait_counts()} == {
                "backoff": 600,
                "needs": None,
                "source": None,
            }
