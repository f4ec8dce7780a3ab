"""The workers of a simulation: they come, go and vanish, and keep what they run."""

from __future__ import annotations

import pytest

from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND
from fairlane.simulation import report
from fairlane.simulation.engine import simulate
from fairlane.simulation.fast import simulate as fast_simulate
from fairlane.simulation.world import Fate
from tests.unit.simulation.fixed import (
    BEGIN,
    FixedWorld,
    act,
    arrival,
    outcomes,
    policy,
    shift,
    times,
)

TEN = Fate(10 * SECOND)
ENGINES = pytest.mark.parametrize("engine", [simulate, fast_simulate])


def test_workers_come_and_go_and_each_runs_what_it_leased():
    come = [arrival(0, *({"id": f"t{n}"} for n in range(4)))]
    crew = [shift(0, "ada", 1), shift(5, "bob", 2), shift(8, "ada", 0)]
    run = simulate(FixedWorld(come, {}, TEN, crew=crew), policy(caps__all=9))
    assert [(line.task, line.worker) for line in run.attempts] == [
        ("t0", "ada"), ("t1", "bob"), ("t2", "bob"), ("t3", "bob"),
    ]  # fmt: skip
    assert times(run) == [
        ("t0", 0, 10 * SECOND),  # who leaves ends what it has begun
        ("t1", 5 * SECOND, 15 * SECOND),
        ("t2", 5 * SECOND, 15 * SECOND),
        ("t3", 15 * SECOND, 25 * SECOND),
    ]
    assert run.slots == ((BEGIN, 1), (BEGIN + 5 * SECOND, 3), (BEGIN + 10 * SECOND, 2))
    assert report.utilisation(run) == 40 / (5 * 1 + 5 * 3 + 15 * 2)


@ENGINES
def test_what_runs_keeps_its_slot_when_its_worker_has_fewer_or_the_cap_falls(engine):
    come = [arrival(0, *({"id": f"t{n}"} for n in range(4)))]
    crew = [shift(0, "ada", 4), shift(0, "bob", 1), shift(10, "bob", 0), shift(30, "ada", 2)]
    people = [act(20, "policy_set", changes={"caps.all": 1})]
    world = FixedWorld(come, {}, Fate(50 * SECOND), crew=crew, people=people)
    run = engine(world, policy(caps__all=9))
    assert run.slots == ((BEGIN, 5), (BEGIN + 10 * SECOND, 4), (BEGIN + 50 * SECOND, 1))
    assert report.utilisation(run) == round(4 * 50 / (5 * 10 + 4 * 40), 4)


@ENGINES
def test_what_vanished_with_its_worker_runs_no_longer_though_the_queue_does_not_know(engine):
    come = [arrival(0, {"id": "a"}, {"id": "b"})]
    crew = [shift(0, "ada", 2), shift(60, "ada", 0, sudden=True)]
    run = engine(FixedWorld(come, {}, Fate(HOUR), crew=crew), policy(), days=1)
    assert [(line.outcome, line.gone_at) for line in run.attempts] == [
        (None, BEGIN + MINUTE),
        (None, BEGIN + MINUTE),
    ]
    assert report.utilisation(run) == 1


def test_labels_choose_the_worker():
    come = [arrival(0, {"id": "a", "labels": ["gpu"]}, {"id": "b"})]
    crew = [shift(0, "ada", 1), shift(3, "bob", 1, labels=("gpu",))]
    run = simulate(FixedWorld(come, {}, TEN, crew=crew), policy(caps__all=9))
    assert [(line.task, line.worker, line.leased_at - BEGIN) for line in run.attempts] == [
        ("b", "ada", 0),
        ("a", "bob", 3 * SECOND),
    ]
    assert run.held == {"no_label": 3 * SECOND}


def test_the_attempts_of_a_worker_that_vanished_are_lost_when_their_lease_is_over():
    come = [arrival(0, {"id": "a"}, {"id": "b"})]
    crew = [shift(0, "ada", 1), shift(0, "bob", 1), shift(60, "ada", 0, sudden=True)]
    run = simulate(
        FixedWorld(come, {}, Fate(HOUR), crew=crew), policy(retry__base="30s", lease__ttl="5m")
    )
    assert [(line.task, line.worker, line.outcome) for line in run.attempts] == [
        ("a", "ada", "lost"), ("b", "bob", "succeeded"), ("a", "bob", "succeeded"),
    ]  # fmt: skip
    assert times(run, "a")[0] == ("a", 0, 5 * MINUTE)
    assert times(run, "a")[1] == ("a", HOUR, 2 * HOUR)


def test_a_worker_that_is_back_knows_at_once_what_it_has_lost():
    crew = [shift(0, "ada", 1), shift(60, "ada", 0, sudden=True), shift(90, "ada", 1)]
    world = FixedWorld([arrival(0, {"id": "a"})], {}, Fate(10 * MINUTE), crew=crew)
    run = simulate(world, policy(retry__base="30s"))
    assert times(run) == [
        ("a", 0, 90 * SECOND),
        ("a", 120 * SECOND, 12 * MINUTE),
    ]
    assert outcomes(run, "a") == ["lost", "succeeded"]


def test_where_nobody_works_everything_waits_for_a_worker():
    crew = [shift(3600, "ada", 1)]
    run = simulate(FixedWorld([arrival(0, {"id": "a"})], {}, TEN, crew=crew), policy())
    assert times(run) == [("a", HOUR, HOUR + 10 * SECOND)]
    assert run.held == {"no_worker": HOUR}
    assert run.slots == ((BEGIN, 0), (BEGIN + HOUR, 1))


@ENGINES
def test_where_nobody_works_no_cap_is_blamed(engine):
    come = [arrival(0, *({"id": f"t{n}"} for n in range(5)))]
    crew = [shift(3600, "ada", 9)]
    run = engine(FixedWorld(come, {}, TEN, crew=crew), policy(caps__all=2))
    assert run.held == {"no_worker": 5 * HOUR, "cap": (3 + 1) * 10 * SECOND}


def test_a_lease_is_renewed_as_long_as_its_attempt_runs():
    come = [arrival(0, {"id": "a"}), arrival(40 * MINUTE, {"id": "b"})]
    crew = [shift(0, "ada", 1), shift(0, "bob", 1)]
    run = simulate(FixedWorld(come, {}, Fate(HOUR), crew=crew), policy(lease__ttl="1m"))
    assert [outcomes(run, "a"), outcomes(run, "b")] == [["succeeded"], ["succeeded"]]


def test_workers_that_come_and_go_in_vain_do_not_go_on_for_ever():
    crew = [shift(n * 86_400, "ada", n % 2) for n in range(1000)]
    world = FixedWorld([arrival(0, {"id": "a", "labels": ["gpu"]})], crew=crew)
    run = simulate(world, policy())
    assert run.attempts == ()
    assert run.end - BEGIN < 40 * 24 * HOUR


@pytest.mark.parametrize("simulate", [simulate, fast_simulate])
def test_workers_come_and_go_until_the_end_also_when_all_is_done(simulate):
    crew = [shift(0, "ada", 1), shift(3600, "bob", 2), shift(7200, "bob", 0)]
    run = simulate(FixedWorld([arrival(0, {"id": "a"})], {}, TEN, crew=crew), policy(), days=1)
    assert times(run) == [("a", 0, 10 * SECOND)]
    assert run.slots == ((BEGIN, 1), (BEGIN + HOUR, 3), (BEGIN + 2 * HOUR, 1))
    assert run.end == BEGIN + DAY
