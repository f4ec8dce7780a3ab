"""Cases: projects, groups, pools, workers, pauses, values, numbers, events, decisions."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fairlane.model.errors import Refused
from fairlane.model.event import Event
from fairlane.model.project import Budget, Group, Pause, PolicyText, Pool, Project, WorkerRow
from fairlane.model.record import replace
from fairlane.store.base import Decision, Store
from fairlane.testing.stores.builders import put, ready, undone

PROJECT = Project(
    "p", 0, 3,
    (Budget("project:p", 10, None, "7d", Fraction(2, 3), "stop"), Budget("all", usd=5)),
    "paused", ("w1", "w2"), "/srv/ü", "main", "P-", "codex", "strict", clock=7, present=False,
)  # fmt: skip


def numbers(events: list[Event]) -> list[int]:
    """The numbers of events."""
    return [event.number for event in events]


def decision(number: int, at: int = 0, base: int | None = None, policy: str = "d1") -> Decision:
    """A decision with a little of everything."""
    against = number if base is None else base
    blobs = (bytes([0, number, 255]), b"", b"plan")
    return Decision(number, at, against, policy, 3, *blobs, {"plan": f"sha{number}"})


class SmallTableCases:
    """Put, read, drop."""

    def test_the_default_project_always_exists(self, store: Store) -> None:
        with store.read() as reading:
            assert set(reading.table(Project)) == {"default"}

    def test_projects(self, store: Store) -> None:
        with store.write() as writing:
            writing.put(PROJECT)
            writing.put(Project("q", workspaces=()))
        with store.read() as reading:
            projects = reading.table(Project)
            assert projects["p"] == PROJECT
            assert projects["q"] == Project("q", workspaces=())
        with store.write() as writing:
            writing.put(replace(PROJECT, weight=5))
            writing.drop(Project, "q")
            writing.drop(Project, "none")
        with store.read() as reading:
            assert set(reading.table(Project)) == {"default", "p"}
            assert reading.table(Project)["p"].weight == 5

    def test_clocks(self, store: Store) -> None:
        with store.write() as writing:
            writing.put(PROJECT)
            writing.put_clocks({"p": (1 << 55, True), "default": (0, False), "none": (1, True)})
        with store.read() as reading:
            projects = reading.table(Project)
            assert projects["p"] == replace(PROJECT, clock=1 << 55, present=True)
            assert (projects["default"].clock, projects["default"].present) == (0, False)
            assert set(projects) == {"default", "p"}

    def test_a_project_with_tasks_stays(self, store: Store) -> None:
        put(store, ready("a", 1, project="p"))
        with pytest.raises(Refused), store.write() as writing:
            writing.drop(Project, "p")

    def test_groups_pools_workers_and_pauses(self, store: Store) -> None:
        groups = [Group("g"), Group("h", "g", -4, "The ∀ of it")]
        pools = [Pool("a", 99, 2, "429 – zu viel"), Pool("b")]
        workers = [WorkerRow("w1", "host", 4, ("gpu", "os=linux"), 5), WorkerRow("w2")]
        pauses = [Pause("all", "ann", 9, "lunch"), Pause("project:p")]
        with store.write() as writing:
            for group, pool, worker, pause in zip(groups, pools, workers, pauses, strict=True):
                writing.put(group)
                writing.put(pool)
                writing.put(worker)
                writing.put(pause)
        with store.read() as reading:
            assert reading.table(Group) == {group.name: group for group in groups}
            assert reading.table(Pool) == {pool.name: pool for pool in pools}
            assert list(reading.table(WorkerRow).values()) == workers
            assert list(reading.table(Pause).values()) == pauses
        with store.write() as writing:
            writing.put(replace(groups[0], parent="h"))
            writing.put(replace(pools[0], until=None, hits=0))
            writing.put(replace(workers[0], seen_at=10))
            writing.put(replace(pauses[0], by="bob"))
            writing.drop(WorkerRow, "w2")
            writing.drop(Pause, "project:p")
            writing.drop(Pause, "none")
        with store.read() as reading:
            assert reading.table(Group)["g"].parent == "h"
            assert reading.table(Pool)["a"].hits == 0
            assert reading.table(WorkerRow) == {"w1": replace(workers[0], seen_at=10)}
            assert reading.table(Pause) == {"all": replace(pauses[0], by="bob")}

    def test_values(self, store: Store) -> None:
        values = {"a": [1, {"b": None}], "zero": 0, "false": False, "text": "ü", "empty": ""}
        with store.write() as writing:
            for name, value in values.items():
                writing.put_value(name, value)
        with store.read() as reading:
            for name, value in values.items():
                assert reading.value(name) == value
            reading.value("a").append("mine")
            assert reading.value("a") == values["a"]
            assert reading.value("none") is None
        with store.write() as writing:
            writing.put_value("a", None)
            writing.put_value("none", None)
            writing.put_value("zero", 1)
            assert (writing.value("a"), writing.value("zero")) == (None, 1)

    def test_numbers_never_return(self, store: Store) -> None:
        with store.write() as writing:
            first = writing.number("fence")
            many = writing.number("fence", 5)
            assert many > first
            assert writing.number("seq") == 1
        numbers = {first, *range(many, many + 5)}
        assert len(numbers) == 6
        with undone(store) as writing:
            writing.number("fence", 3)
        with store.write() as writing:
            assert writing.number("fence") > max(numbers)

    def test_events_are_numbered_without_a_gap(self, store: Store) -> None:
        with store.write() as writing:
            assert writing.log([]) == 0
            event = Event(0, 5, "added", "a", "p", {"x": [1, {"ü": None}]})
            assert writing.log([event, Event(99, 6, "paused")]) == 2
            assert writing.log([Event(0, 7, "leased", "a"), Event(0, 8, "added", "b")]) == 4
            assert writing.log([]) == 4
        with store.write() as writing:
            assert writing.log([Event(0, 9, "done", "a")]) == 5
        with store.read() as reading:
            found = reading.events()
            assert numbers(found) == [1, 2, 3, 4, 5]
            assert found[0] == replace(event, number=1)
            assert found[1] == Event(2, 6, "paused")

    def test_events_are_read_from_both_ends(self, store: Store) -> None:
        with store.write() as writing:
            writing.log([Event(0, n, "e", "a" if n % 2 else "b") for n in range(1, 11)])
        with store.read() as reading:
            assert numbers(reading.events(after=7)) == [8, 9, 10]
            assert numbers(reading.events(after=3, limit=2)) == [4, 5]
            assert numbers(reading.events(task="b", after=2, limit=3)) == [4, 6, 8]
            assert numbers(reading.events(limit=3, last=True)) == [8, 9, 10]
            assert numbers(reading.events(task="a", limit=2, last=True)) == [7, 9]
            assert numbers(reading.events(after=9, limit=3, last=True)) == [10]
            assert reading.events(task="none") == []
            assert reading.events(after=10) == []
            assert numbers(reading.events(limit=99, last=True)) == list(range(1, 11))

    def test_events_of_one_kind(self, store: Store) -> None:
        with store.write() as writing:
            kinds = ("x", "y", "y", "x", "y")
            writing.log([Event(0, 1, kind, "ab"[at % 2]) for at, kind in enumerate(kinds)])
        with store.read() as reading:
            assert numbers(reading.events(kind="y")) == [2, 3, 5]
            assert numbers(reading.events(kind="y", after=2, limit=1)) == [3]
            assert numbers(reading.events(kind="y", limit=2, last=True)) == [3, 5]
            assert numbers(reading.events(kind="y", task="a")) == [3, 5]
            assert numbers(reading.events(kind="x", task="b", last=True)) == [4]
            assert reading.events(kind="none") == []

    def test_decisions(self, store: Store) -> None:
        made = [decision(1), decision(2, 5, 1), decision(5, 9)]
        with store.write() as writing:
            writing.put(PolicyText("d1", "text"))
            for row in made:
                writing.put_decision(row)
        with store.read() as reading:
            assert reading.decisions() == made
            assert reading.decisions(after=1, limit=1) == [made[1]]
        with pytest.raises(Refused), store.write() as writing:
            writing.put_decision(decision(5))
        with store.write() as writing:
            writing.put_decision(decision(6, 9), oldest=5)
            assert writing.decisions() == [made[2], decision(6, 9)]

    def test_a_policy_is_kept_once(self, store: Store) -> None:
        with store.write() as writing:
            writing.put(PolicyText("d1", "first ü"))
            writing.put(PolicyText("d1", "second"))
        with store.read() as reading:
            assert reading.table(PolicyText) == {"d1": PolicyText("d1", "first ü")}
        with pytest.raises(Refused), store.write() as writing:
            writing.put_decision(decision(1, policy="d2"))
