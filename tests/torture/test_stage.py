"""Processes of the stage run one at a time, each to its next gate; they crash, stop and wait."""

from __future__ import annotations

import pytest

from fairlane.clock import Waker
from fairlane.model.instant import SECOND
from fairlane.testing.torture.stage import STORE, Process, Stage

NOON = 1_000 * SECOND


@pytest.fixture
def stage():
    made = Stage(NOON, ("a", "b"))
    yield made
    made.close()


def steps(stage: Stage) -> list[str]:
    """The gates at which everybody stands."""
    return [strand.gate for process in stage.processes.values() for strand in process.strands]


def test_a_process_runs_from_gate_to_gate(stage: Stage):
    done: list[str] = []

    def work(process: Process) -> None:
        done.append(process.gate("write"))
        done.append(process.gate("written"))

    process = stage.start("p", "a", work)
    assert steps(stage) == ["begin"]
    stage.go(process.strands[0])
    assert (steps(stage), done) == (["write"], [])
    stage.go(process.strands[0], "busy")
    assert (steps(stage), done) == (["written"], ["busy"])
    stage.go(process.strands[0])
    assert (stage.processes, done) == ({}, ["busy", ""])


def test_a_killed_process_does_nothing_more_in_any_thread(stage: Stage):
    done: list[str] = []

    def work(process: Process) -> None:
        pool = process.threads(2, "pool")
        pool.submit(lambda: done.append(process.gate("write")))
        try:
            pool.shutdown()
            done.append("closed")
        finally:
            process.gate("clean up")
            done.append("cleaned up")

    process = stage.start("p", "a", work)
    stage.go(process.strands[0])
    stage.go(process.strands[1])
    assert steps(stage) == ["wait", "write"]
    assert stage.kill(process) == []
    assert (stage.processes, done) == ({}, [])


def test_an_error_ends_its_process_and_is_told(stage: Stage):
    def work(process: Process) -> None:
        raise LookupError("no")

    process = stage.start("p", "a", work)
    errors = stage.go(process.strands[0])
    assert [str(error) for error in errors] == ["no"]
    assert stage.processes == {}


def test_an_error_in_a_pool_is_seen(stage: Stage):
    def work(process: Process) -> None:
        process.threads(1, "pool").submit(lambda: 1 // 0)

    process = stage.start("p", "a", work)
    while process.strands:
        stage.go(process.strands[0])
    assert [type(error) for error in stage.unseen] == [ZeroDivisionError]


def test_a_wait_ends_with_time_or_with_what_it_waits_for(stage: Stage):
    waker = Waker()
    ended: list[object] = []

    def work(process: Process) -> None:
        ended.extend(process.clock.wait(5.0, waker) for _ in range(2))

    process = stage.start("p", "a", work)
    stage.go(process.strands[0])
    assert stage.ready() == []
    assert stage.next_wake() == 5.0
    stage.let_pass(5.0)
    assert stage.ready() == process.strands
    stage.go(process.strands[0])
    assert stage.ready() == []
    waker.set()
    assert stage.ready() == process.strands
    stage.go(process.strands[0])
    assert ended == [[], [waker]]
    waker.close()


def test_a_frozen_process_sleeps_on(stage: Stage):
    process = stage.start("p", "a", lambda process: process.clock.wait(1.0))
    stage.go(process.strands[0])
    process.frozen_until = 60.0
    stage.let_pass(30.0)
    assert stage.ready() == []
    assert stage.next_wake() == 60.0
    stage.let_pass(30.0)
    assert stage.ready() == process.strands


def test_hosts_have_clocks_of_their_own_and_the_store_decides(stage: Stage):
    seen: list[tuple[int, int, float]] = []

    def work(process: Process) -> None:
        clock = process.clock
        for _ in range(2):
            seen.append((clock.now() - NOON, clock.own() - NOON, clock.monotonic()))
            clock.wait(10.0)

    process = stage.start("p", "a", work)
    stage.go(process.strands[0])
    stage.hosts["a"].set(ahead=3600.0, rate=2.0)
    stage.hosts[STORE].set(ahead=-60.0, rate=1.0)
    stage.let_pass(10.0)
    stage.go(process.strands[0])
    assert seen == [(0, 0, 0.0), (-50 * SECOND, 3620 * SECOND, 20.0)]


def test_who_only_looks_must_let_others_go_on(stage: Stage):
    def work(process: Process) -> None:
        while True:
            process.clock.wait(0.0)

    process = stage.start("p", "a", work)
    stage.go(process.strands[0])
    assert steps(stage) == ["spin"]
