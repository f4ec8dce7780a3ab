"""What a view keeps, and when it reads again."""

from __future__ import annotations

import pytest

from fairlane.engine.context import Facts
from fairlane.engine.look.flights import Flights
from fairlane.engine.look.planned import look_and_plan
from fairlane.engine.look.view import View, view_of
from fairlane.engine.look.workers import Asker
from fairlane.model.instant import MINUTE
from fairlane.model.record import changed
from fairlane.policy.policy import Policy
from fairlane.settings import host_name
from fairlane.store.memory.store import MemoryStore
from tests.looks import seen
from tests.unit.contexts import NOON, TestContext

POLICY = Policy.preset("balanced")


@pytest.fixture
def world(tmp_path):
    return TestContext(tmp_path)


def read(world: TestContext, flights: Flights, names: set[str] | None = None) -> Flights:
    with world.context.store.read() as reading:
        flights.read(reading, POLICY, names)
    return flights


def living(flights: Flights) -> dict[str, bool]:
    return {flight.task: flight.lease.alive for flight in flights.in_order()}


def here(world: TestContext, task: str) -> str:
    """An attempt of this host, which has a process."""
    (lease,) = world.lease(1)
    assert lease["task"] == task
    with world.context.store.write() as tx:
        row = tx.attempt(lease["lease"])
        assert row is not None
        more = {"executor": "process", "host": host_name(), "handle": "1 1"}
        tx.put_attempts([changed(row, **more)])
    return str(lease["lease"])


def test_an_attempt_is_gone_as_long_as_somebody_says_so(world):
    world.add({"id": "a"}, {"id": "b"})
    lease = here(world, "a")
    world.lease(1)
    flights = read(world, Flights())
    late = NOON + 60 * MINUTE
    assert living(flights) == {"a": True, "b": False}
    flights.judge(Facts(gone=frozenset({lease})), late)
    assert living(flights) == {"a": False, "b": False}
    assert flights.take_moved() is None, "all of it is new"
    flights.judge(Facts(), NOON)
    assert living(flights) == {"a": True, "b": False}
    moved = flights.take_moved()
    assert moved is not None
    assert moved.keys() == {"a"}


def test_leases_that_are_over_come_in_the_order_in_which_they_were_given(world):
    world.add({"id": "a"}, {"id": "b"}, {"id": "c"})
    for _ in range(3):
        world.lease(1)
        world.wait(MINUTE)
    flights = read(world, Flights())
    ends = sorted(attempt.expires_at for attempt in flights.attempts.values())
    assert [row.task for row in flights.expired(ends[1])] == ["a", "b"]
    assert flights.expired(ends[0] - 1) == []


def test_what_has_landed_is_forgotten(world):
    world.add({"id": "a"}, {"id": "b"})
    first, _ = world.lease()
    flights = read(world, Flights())
    world.finish(first["lease"])
    read(world, flights, {"a", "nobody"})
    assert [flight.task for flight in flights.in_order()] == ["b"]
    assert flights.on_worker["box"] == 1
    assert [row.task for row in flights.expired(1 << 60)] == ["b"]


def test_what_nobody_changed_is_the_same_object(world):
    world.add({"id": "a"}, {"id": "b", "kind": "plan"}, {"id": "c", "kind": "plan"})
    view = view_of(world.context)
    before, after = (snapshot(world, view) for _ in range(2))
    for name in ("lanes", "in_flight", "projects", "pools", "history", "groups"):
        assert getattr(before, name) is getattr(after, name), name
    world.lease(1)
    then = snapshot(world, view)
    kept = {lane.key.kind: lane for lane in before.lanes}
    assert [lane is kept[lane.key.kind] for lane in then.lanes] == [True]


def snapshot(world: TestContext, view: View | None):
    """What a round of this view sees."""
    with world.context.store.read() as reading:
        now = world.context.now()
        planned = look_and_plan(
            world.context, reading, POLICY, now, Asker("box"), facts=Facts(), view=view
        )
    return planned.snapshot


def test_another_policy_is_another_view(world):
    world.add({"id": "a"})
    world.lease(1)
    view = view_of(world.context)
    with world.context.store.read() as reading:
        flights = view.flights
        view.follow(reading, world.context.policy())
        assert view.flights is flights
        view.follow(reading, POLICY.with_overrides({"usage.count": ["output"]}))
        assert view.flights is not flights


def test_another_store_is_another_view(world):
    view = view_of(world.context)
    assert view_of(world.context) is view
    world.context.store = MemoryStore()
    assert view_of(world.context) is not view


@pytest.mark.parametrize("limit", [None, 1, 3, 30])
def test_a_view_reads_as_much_of_each_lane_as_a_new_one(world, limit):
    """Whatever was asked before."""
    world.add(*({"kind": ("code", "plan")[n % 3 == 0], "priority": n % 2} for n in range(60)))
    view = view_of(world.context)
    asker = Asker("box", limit)
    for before in (Asker("box", 40), Asker("box", 1), Asker("box")):
        for each in (before, asker):
            with world.context.store.read() as reading:
                warm, cold = (
                    look_and_plan(
                        world.context, reading, POLICY, NOON, each, facts=Facts(), view=kept
                    )
                    for kept in (view, None)
                )
            assert seen(warm.snapshot) == seen(cold.snapshot)
            assert warm.window == cold.window


class Interrupted(Exception):
    """What comes in the middle of a look."""


@pytest.mark.parametrize("part", ["tasks", "lanes", "table", "usage_sums", "wait_counts"])
def test_who_was_interrupted_begins_anew(world, monkeypatch, part):
    world.add(
        {"id": "a"}, {"id": "b", "kind": "plan"}, {"id": "c", "not_before": "2030-01-01T00:00:00Z"}
    )
    view = view_of(world.context)
    snapshot(world, view)
    world.lease(1)
    world.add({"id": "d", "kind": "review"}, {"id": "e", "not_before": "2031-01-01T00:00:00Z"})
    with world.context.store.read() as reading:
        kind = type(reading)

    def fails(*_: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(kind, part, fails)
        with pytest.raises(Interrupted):
            snapshot(world, view)
    assert seen(snapshot(world, view)) == seen(snapshot(world, None))
