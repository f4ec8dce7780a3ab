"""Cases: finding tasks by time, by name, by what they wait for, and counting them."""

from __future__ import annotations

from fairlane.model.record import replace
from fairlane.model.task import Status
from fairlane.store.base import Filter, Placed, Store
from fairlane.testing.stores.builders import (
    change,
    counted,
    end,
    ended,
    ids,
    put,
    ready,
    save,
    start,
    task,
    waits,
)


class LookupCases:
    """Everything that is asked about tasks beside the lanes."""

    def test_due_tasks_come_the_earliest_first(self, store: Store) -> None:
        parked = Placed(task("p", 4, status=Status.PARKED), "", 20)
        put(
            store,
            waits("a", 1, "backoff", 30),
            waits("b", 2, "not_before", 10),
            waits("c", 3, "backoff", 20),
            parked,
            waits("never", 5, "needs"),
            ready("lane", 6),
        )
        with store.read() as reading:
            assert reading.next_due() == 10
            assert reading.due(9, 10) == []
            assert ids(reading.due(20, 10)) == ["b", "c", "p"]
            assert reading.due(20, 10)[2] == parked
            assert ids(reading.due(1000, 2)) == ["b", "c"]
            assert ids(reading.due(1000, 10)) == ["b", "c", "p", "a"]
        save(store, ready("b", 2))
        with store.read() as reading:
            assert reading.next_due() == 20
            assert ids(reading.due(1000, 10)) == ["c", "p", "a"]

    def test_dependents_are_queued(self, store: Store) -> None:
        first = ready("first", 1)
        put(
            store,
            first,
            waits("by-need", 9, "needs", needs=("other", "first")),
            waits("by-parent", 3, "parent", parent="first", depth=1),
            waits("by-both", 4, "needs", needs=("first", "first"), parent="first"),
            waits("upstream", 5, "upstream", needs=("first",)),
            ready("ready", 6, needs=("first",)),
            ended("done", 7, 9, needs=("first",)),
            waits("stranger", 8, "needs", needs=("other",)),
        )
        with store.read() as reading:
            wanted = ["by-parent", "by-both", "upstream", "ready", "by-need"]
            assert reading.dependents("first") == wanted
            assert reading.dependents("other") == ["stranger", "by-need"]
            assert reading.dependents("none") == []
        save(store, ended("by-both", 4, 9, needs=("first", "first"), parent="first"))
        with store.write() as writing:
            writing.save([waits("upstream", 5, "needs", needs=("other",))], content=True)
        with store.read() as reading:
            assert reading.dependents("first") == ["by-parent", "ready", "by-need"]
            assert reading.dependents("other") == ["upstream", "stranger", "by-need"]

    def test_children_are_counted_whatever_they_do(self, store: Store) -> None:
        put(
            store,
            ready("root", 1),
            ready("a", 2, parent="root"),
            waits("b", 3, "parent", parent="root"),
            ended("c", 4, 9, parent="root"),
            ready("d", 5, parent="a"),
        )
        with store.read() as reading:
            assert [reading.children(each) for each in ("root", "a", "d", "x")] == [3, 1, 0, 0]
        with store.write() as writing:
            writing.save([ready("d", 5, parent="root")], content=True)
        with store.read() as reading:
            assert [reading.children(each) for each in ("root", "a")] == [4, 0]

    def test_tallies_count_every_task_once(self, store: Store) -> None:
        a, b = ready("a", 1), ready("b", 2)
        put(store, a, b, waits("c", 3, "needs"), waits("d", 4, "backoff", 9, project="p"))
        put(store, ended("e", 5, 1), ready("f", 6, kind="spec"))
        start(store, a)
        with store.read() as reading:
            assert counted(reading.tallies()) == {
                ("done", "", "default", "code"): 1,
                ("leased", "", "default", "code"): 1,
                ("queued", "", "default", "code"): 1,
                ("queued", "", "default", "spec"): 1,
                ("queued", "backoff", "p", "code"): 1,
                ("queued", "needs", "default", "code"): 1,
            }
        with store.write() as writing:
            writing.save([change(b, kind="spec", project="p")], content=True)
        save(store, ready("c", 3))
        with store.read() as reading:
            counts = counted(reading.tallies())
            assert sum(counts.values()) == len(reading.listing(Filter())) == 6
            assert counts["queued", "", "p", "spec"] == 1
            assert counts["queued", "", "default", "code"] == 1
            assert ("queued", "needs", "default", "code") not in counts

    def test_listing_by_every_field(self, store: Store) -> None:
        special = {
            "project": "p", "kind": "spec", "group": "g", "pool": "team", "agent": "codex",
            "parent": "plain",
        }  # fmt: skip
        put(store, ready("plain", 1))
        for seq, (name, value) in enumerate(special.items(), 2):
            put(store, ready(name, seq, **{name: value}))
        put(store, waits("n", 20, "needs"), waits("s", 21, "source"), ended("d", 22, 1))
        put(store, ended("x", 23, 1, Status.CANCELED, group="g"))
        with store.read() as reading:
            for name, value in special.items():
                if name != "group":
                    assert ids(reading.listing(Filter(**{name: value}))) == [name]  # type: ignore[arg-type]
            for which, wanted in (
                (Filter(group="g"), ["group", "x"]),
                (Filter(group="g", status=(Status.QUEUED,)), ["group"]),
                (Filter(group="g", project="p"), []),
                (Filter(group="none"), []),
                (Filter(wait="needs"), ["n"]),
                (Filter(wait="source", status=(Status.QUEUED, Status.DONE)), ["s"]),
                (Filter(wait="source", status=(Status.DONE,)), []),
                (Filter(status=(Status.DONE, Status.CANCELED)), ["d", "x"]),
                (Filter(wait=""), ["plain", *special]),
                (Filter(wait="", kind="code", pool="team"), ["pool"]),
                (Filter(wait="none"), []),
            ):
                assert ids(reading.listing(which)) == wanted, which

    def test_listing_the_ready_tasks_of_lanes(self, store: Store) -> None:
        a, b = ready("a", 5, ready_since=2), ready("b", 2, ready_since=9)
        c, d = ready("c", 3, kind="spec"), ready("d", 4, kind="plan")
        put(store, a, b, c, d, waits("w", 1, "needs"))
        lanes = (a.task.lane, c.task.lane)
        gone = a.task.lane._replace(failures=7)
        with store.read() as reading:
            assert ids(reading.listing(Filter(held_lanes=lanes))) == ["b", "c", "a"]
            assert ids(reading.listing(Filter(held_lanes=lanes), after=2, limit=1)) == ["c"]
            assert ids(reading.listing(Filter(held_lanes=lanes, kind="spec"))) == ["c"]
            assert reading.listing(Filter(held_lanes=(gone,))) == []
            assert reading.listing(Filter(held_lanes=())) == []

    def test_listing_page_by_page(self, store: Store) -> None:
        put(store, *(ready(f"t{n}", n, kind="code" if n % 3 else "spec") for n in range(50, 0, -1)))
        with store.read() as reading:
            for which in (Filter(), Filter(kind="spec"), Filter(status=(Status.QUEUED,))):
                whole = reading.listing(which)
                pages: list[Placed] = []
                while page := reading.listing(which, pages[-1].task.seq if pages else 0, 7):
                    assert len(page) <= 7
                    pages += page
                assert pages == whole
                assert [row.task.seq for row in pages] == sorted(e.task.seq for e in pages)
            assert len(reading.listing(Filter(kind="spec"))) == 16

    def test_tasks_in_flight_have_the_lease_of_their_open_attempt(self, store: Store) -> None:
        a, b, c = ready("a", 2, attempts=4), ready("b", 1), ready("c", 3)
        put(store, a, b, c)
        with store.read() as reading:
            assert reading.in_flight() == []
        leased, held = start(store, a, estimate=700, tokens=(5, 6, 7, 8), direct=True)
        start(store, b, worker=None)
        running = change(leased, status=Status.RUNNING)
        save(store, running)
        with store.write() as writing:
            writing.put_attempts([replace(held, expires_at=12345, started_at=777)])
        with store.read() as reading:
            second, first = reading.in_flight()
            assert (first.id, second.id) == ("a", "b")
            lease = first.lease
            assert lease is not None
            assert (lease.id, lease.fence, lease.attempt) == (held.lease, held.fence, 5)
            assert (lease.worker, lease.expires_at, lease.estimate) == ("w1", 12345, 700)
            assert lease.started_at == held.leased_at
            assert lease.direct
            assert lease.used == 0  # what counts as used only a policy can tell
            assert not lease.alive
            assert replace(first, lease=None) == running.task
            assert reading.task("a") == first
            assert second.lease is not None
            assert second.lease.worker is None
        with store.write() as writing:
            writing.put_attempts([end(held, 900)])
            writing.save([change(running, status=Status.QUEUED)])
        with store.read() as reading:
            assert [row.id for row in reading.in_flight()] == ["b"]
            assert reading.task("a") == change(running, status=Status.QUEUED).task
        assert store.check() == []
