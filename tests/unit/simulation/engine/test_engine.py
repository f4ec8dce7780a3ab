"""The engine: each thing that can happen in a world, at the instant at which it must."""

from __future__ import annotations

import tempfile

import pytest

from fairlane.clock import VirtualClock
from fairlane.engine import attempts
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Ending
from fairlane.engine.look.workers import Asker
from fairlane.model.errors import Invalid
from fairlane.model.event import Happening
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND
from fairlane.model.project import WorkerRow
from fairlane.model.task import Outcome, Task
from fairlane.service import tasks
from fairlane.simulation.engine import simulate
from fairlane.simulation.fast import simulate as fast_simulate
from fairlane.simulation.provider import Limits, Outage, Quota
from fairlane.simulation.world import Act, Fate
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


def test_tasks_start_in_order_as_slots_become_free():
    come = [arrival(0, {"id": "a"}, {"id": "b"}, {"id": "c"}), arrival(SECOND, {"id": "d"})]
    world = FixedWorld(come, {"b": [Fate(4 * SECOND)]}, TEN)
    run = simulate(world, policy(caps__all=2))
    assert times(run) == [
        ("a", 0, 10 * SECOND),
        ("b", 0, 4 * SECOND),
        ("c", 4 * SECOND, 14 * SECOND),
        ("d", 10 * SECOND, 20 * SECOND),
    ]
    assert run.slots == ((BEGIN, 2),)
    assert run.held == {"cap": (1 + 2 * 3 + 6) * SECOND}
    assert run.end == BEGIN + 20 * SECOND
    assert [(task.task, task.ready_at, task.status) for task in run.tasks] == [
        ("a", BEGIN, "done"),
        ("b", BEGIN, "done"),
        ("c", BEGIN, "done"),
        ("d", BEGIN + SECOND, "done"),
    ]
    assert run.late == {"default": 9 * SECOND}


def test_a_failure_waits_and_is_tried_again_until_it_is_parked():
    failing = Fate(SECOND, Outcome.FAILED, (5, 6, 7, 8), 9)
    world = FixedWorld([arrival(0, {"id": "a"})], {}, failing)
    run = simulate(world, policy(retry__base="30s", retry__max_attempts=3))
    assert times(run) == [
        ("a", 0, SECOND),
        ("a", 31 * SECOND, 32 * SECOND),
        ("a", 92 * SECOND, 93 * SECOND),
    ]
    assert run.held == {"backoff": 90 * SECOND}
    assert run.tasks[0].status == "parked"
    assert [(line.tokens, line.usd) for line in run.attempts] == [(5 + 6 + 8, 9)] * 3


def test_a_task_starts_when_what_it_needs_is_done():
    come = [arrival(0, {"id": "b", "needs": ["a"]}, {"id": "a"})]
    run = simulate(FixedWorld(come, {}, TEN), policy())
    assert times(run) == [("a", 0, 10 * SECOND), ("b", 10 * SECOND, 20 * SECOND)]
    assert run.held == {"needs": 10 * SECOND}
    assert run.tasks[0].ready_at == BEGIN + 10 * SECOND


def test_no_attempt_runs_longer_than_its_timeout():
    come = [arrival(0, {"id": "a", "max_attempts": 1})]
    world = FixedWorld(come, {}, Fate(2 * HOUR, tokens=(100, 0, 0, 0), usd=11))
    run = simulate(world, policy(attempt__timeout="30m"))
    assert times(run) == [("a", 0, 30 * MINUTE)]
    assert [(line.outcome, line.tokens, line.usd) for line in run.attempts] == [("failed", 25, 2)]


def test_launches_of_one_round_are_apart_by_the_pause_that_the_policy_asks_for():
    world = FixedWorld([arrival(0, {"id": "a"}, {"id": "b"}, {"id": "c"})], {}, TEN)
    run = simulate(world, policy(caps__all=2, capacity__spawn_delay="3s"))
    assert times(run) == [
        ("a", 0, 10 * SECOND),
        ("b", 0, 13 * SECOND),
        ("c", 10 * SECOND, 20 * SECOND),
    ]


def test_an_end_that_is_given_ends_it_before_anything_is_over():
    world = FixedWorld([arrival(0, {"id": "a"}), arrival(40 * HOUR, {"id": "b"})], {}, TEN)
    world.usual = Fate(30 * HOUR)
    run = simulate(world, policy(attempt__timeout="100h"), days=1)
    assert run.end == BEGIN + 24 * HOUR
    assert times(run) == [("a", 0, None)]
    assert [task.status for task in run.tasks] == ["running"]


@ENGINES
def test_what_comes_after_the_longest_simulation_is_refused_unless_days_are_given(engine):
    come = [arrival(0, {"id": "a"}), arrival(3660 * DAY, {"id": "b"}, {"id": "c"})]
    world = FixedWorld(come, {}, TEN)
    with pytest.raises(
        Invalid, match=r"^task b at 2034-10-12T00:00:00Z: more than 3,660 days"
    ) as refused:
        engine(world, policy())
    assert "set `days`" in refused.value.hint
    assert [line.task for line in engine(world, policy(), days=1).tasks] == ["a"]
    world = FixedWorld(come[:1], {}, TEN, people=[Act(BEGIN + 4000 * DAY, "pause", {})])
    with pytest.raises(Invalid, match=r"^act pause at "):
        engine(world, policy())


# Providers


def test_a_rate_limit_throttles_then_one_probe_then_the_rest():
    come = [arrival(0, *({"id": f"t{n}"} for n in range(4)))]
    limits = {"demo": Limits((Quota(MINUTE, requests=2),))}
    run = simulate(FixedWorld(come, {}, TEN, limits=limits), policy(caps__all=3))
    assert times(run) == [
        ("t0", 0, 10 * SECOND),
        ("t1", 0, 10 * SECOND),
        ("t2", 0, 2 * SECOND),  # refused: the provider asks for 60 s
        ("t2", 62 * SECOND, 72 * SECOND),  # a probe
        ("t3", 72 * SECOND, 82 * SECOND),
    ]
    assert outcomes(run, "t2") == ["throttled", "succeeded"]
    assert run.held == {"cap": 2 * SECOND, "cooldown": 120 * SECOND, "probe": 10 * SECOND}


def test_a_quota_cuts_off_who_reports_and_frees_at_its_reset():
    come = [arrival(0, {"id": "a"})]
    fate = Fate(100 * SECOND, tokens=(1000, 0, 0, 0), reports=3)
    limits = {"demo": Limits((Quota(HOUR, tokens=500, resets=True),))}
    run = simulate(FixedWorld(come, {"a": [fate]}, TEN, limits=limits), policy())
    again = HOUR + MINUTE  # a minute of grace after the reset
    assert times(run) == [("a", 0, 50 * SECOND), ("a", again, again + 10 * SECOND)]
    assert [line.tokens for line in run.attempts] == [500, 0]
    assert outcomes(run, "a") == ["throttled", "succeeded"]


def test_an_outage_ends_what_runs():
    outage = Outage(BEGIN + 5 * SECOND, BEGIN + 20 * SECOND, retry_after=15 * SECOND)
    limits = {"demo": Limits(outages=(outage,))}
    run = simulate(FixedWorld([arrival(0, {"id": "a"})], {}, TEN, limits=limits), policy())
    assert times(run) == [("a", 0, 5 * SECOND), ("a", 20 * SECOND, 30 * SECOND)]


# Budgets


def test_what_a_budget_stops_ends_at_once_and_what_it_cost_is_known():
    come = [arrival(0, {"id": "a"}, {"id": "b"})]
    fates = {"a": [Fate(100 * SECOND, tokens=(800, 0, 0, 0), reports=3)]}
    fates["b"] = [Fate(200 * SECOND, tokens=(400, 0, 0, 0))]
    world = FixedWorld(come, fates, TEN)
    budget = {"scope": "all", "tokens": 590, "window": "1h", "on_exceeded": "stop"}
    run = simulate(world, policy(share__default_estimate=1, budget=[budget]))
    assert times(run)[:2] == [("a", 0, 75 * SECOND), ("b", 0, 75 * SECOND)]
    assert outcomes(run, "a")[0] == outcomes(run, "b")[0] == "released"
    assert [line.tokens for line in run.attempts][:2] == [600, 150]
    assert run.overshoot == {"all 1h tokens": 160}
    assert run.held["budget"] > HOUR


def test_a_budget_that_is_kept_is_not_overspent():
    budget = {"scope": "all", "tokens": 5_000, "window": "24h"}
    run = simulate(FixedWorld([arrival(0, {"id": "a"})], {}, TEN), policy(budget=[budget]))
    assert run.overshoot == {"all 24h tokens": 0}


# People


def test_people_pause_cancel_and_change_their_mind():
    come = [arrival(0, {"id": "a"}, {"id": "b"}), arrival(SECOND, {"id": "c"})]
    people = [
        act(1, "pause", scope="all"),
        act(4, "cancel", ids=["b"]),
        act(9, "cancel", ids=["nobody"]),  # makes no sense here
        act(30, "resume", scope="all"),
    ]
    run = simulate(FixedWorld(come, {}, TEN, people=people), policy(caps__all=2))
    assert times(run) == [
        ("a", 0, 10 * SECOND),
        ("b", 0, 4 * SECOND),
        ("c", 30 * SECOND, 40 * SECOND),
    ]
    assert outcomes(run, "b") == ["canceled"]
    assert run.held == {"paused": 29 * SECOND}


def test_what_people_may_not_do_changes_nothing_and_is_told():
    acts = [act(1, "cancel", ids=["nobody"]), act(2, "pause", scope="all")]
    run = simulate(FixedWorld([arrival(0, {"id": "a"})], {}, TEN, people=acts), policy())
    assert times(run) == [("a", 0, 10 * SECOND)]
    assert [(at - BEGIN, do) for at, do, _ in run.undone] == [(SECOND, "cancel")]
    assert "nobody" in run.undone[0][2]


@ENGINES
def test_work_for_an_archived_project_is_refused_and_told_once(engine):
    come = [arrival(at * SECOND, {"id": f"t{at}", "project": "p"}) for at in (0, 20, 30)]
    added = act(0, "project_add", name="p", values={})
    archived = act(10, "project_set", name="p", values={"status": "archived"})
    run = engine(FixedWorld(come, {}, TEN, people=[added, archived]), policy())
    assert [line.task for line in run.tasks] == ["t0"]
    assert [(at - BEGIN, do) for at, do, _ in run.undone] == [(20 * SECOND, "add")]
    assert run.undone[0][2] == "project p is archived"


@ENGINES
def test_people_change_the_policy_and_nothing_touches_the_disk(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no such folder"))
    come = [arrival(0, *({"id": f"t{n}"} for n in range(4)))]
    people = [
        act(4, "policy_set", changes={"caps.all": 3}),
        act(5, "policy_set", changes={"caps.al": 9}),
    ]
    run = engine(FixedWorld(come, {}, TEN, people=people), policy(caps__all=1))
    assert [(at - BEGIN, do) for at, do, _ in run.undone] == [(5 * SECOND, "policy_set")]
    assert [line[1] for line in times(run)] == [0, 4 * SECOND, 4 * SECOND, 10 * SECOND]
    assert run.slots == ((BEGIN, 1), (BEGIN + 4 * SECOND, 3))


def test_what_the_queue_is_too_deep_for_comes_in_when_it_moves():
    come = [arrival(n * SECOND, {"id": f"t{n}"}) for n in range(4)]
    run = simulate(FixedWorld(come, {}, TEN), policy(caps__all=1, backpressure__hard=1))
    assert [line[:2] for line in times(run)] == [(f"t{n}", 10 * n * SECOND) for n in range(4)]
    assert [task.arrived_at - BEGIN for task in run.tasks] == [n * SECOND for n in range(4)]


def test_what_never_comes_in_is_counted():
    come = [arrival(n * SECOND, {"id": f"t{n}"}) for n in range(4)]
    run = simulate(FixedWorld(come), policy(caps__all=0, backpressure__hard=1))
    assert (len(run.tasks), run.refused) == (1, 3)


def test_in_direct_mode_what_is_added_starts_whatever_the_caps_say():
    come = [arrival(0, {"id": "a"}), arrival(SECOND, {"id": "b"})]
    rules = policy(caps__all=1, capacity__mode="direct")
    run = simulate(FixedWorld(come, {}, TEN), rules)
    assert times(run) == [("a", 0, 10 * SECOND), ("b", SECOND, 11 * SECOND)]


def test_checks_are_passed_by_what_succeeds_and_failed_where_the_fate_says():
    check = {"checks": [["make", "test"], ["make", "lint"]], "max_attempts": 2}
    failed = Fate(5 * SECOND, Outcome.CHECK_FAILED)
    world = FixedWorld([arrival(0, {"id": "a", **check})], {"a": [failed]}, TEN)
    run = simulate(world, policy(retry__base="1s"))
    assert outcomes(run, "a") == ["check_failed", "succeeded"]


def test_a_canceled_fate_is_a_cancel_by_a_person():
    world = FixedWorld([arrival(0, {"id": "a"})], {}, Fate(SECOND, Outcome.CANCELED))
    run = simulate(world, policy())
    assert (outcomes(run, "a"), run.tasks[0].status) == (["canceled"], "canceled")


# Work under way


class UnderWay(FixedWorld):
    """Two attempts have run for five minutes when the simulation begins; one more has ended."""

    def prepare(self, context: Context) -> None:
        super().prepare(context)
        clock, asker = context.clock, Asker("ada", None, "process", "ada")
        assert isinstance(clock, VirtualClock)
        clock.at -= 5 * MINUTE
        tasks.add(context, [{"id": name, "agent": "demo"} for name in ("a", "b", "c")])
        with context.store.write() as tx:
            tx.put(WorkerRow("ada", "ada", 3, (), context.now()))
        leases = attempts.lease(context, asker).documents
        attempts.start(context, {lease["lease"]: lease["lease"] for lease in leases})
        clock.at += MINUTE
        attempts.finish(context, {leases[2]["lease"]: Ending(Happening.SUCCEEDED)})
        clock.at += 4 * MINUTE

    def fate(self, seed: int, task: Task, attempt: int, ran: int = 0) -> Fate:
        return Fate(ran + MINUTE if task.id == "a" else ran - MINUTE, tokens=(60, 0, 0, 0))


@pytest.mark.parametrize("crew", [[], [shift(0, "ada", 2)]])
def test_what_runs_at_the_begin_goes_on(crew):
    world = UnderWay([arrival(0, {"id": "d"})], crew=crew)
    run = simulate(world, policy(caps__all=4, lease__ttl="2m"))
    assert times(run) == [
        ("a", -5 * MINUTE, MINUTE),
        ("b", -5 * MINUTE, 1),  # it should have ended before: it does at once
        ("d", 0 if not crew else 1, (0 if not crew else 1) + 1),
    ]
    assert [line.tokens for line in run.attempts] == [60, 60, 60]
    assert [(task.task, task.started_at) for task in run.tasks] == [
        ("a", BEGIN - 5 * MINUTE),
        ("b", BEGIN - 5 * MINUTE),
        ("d", run.attempts[2].leased_at),
    ]
