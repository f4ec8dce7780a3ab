"""Commands without a daemon start what was added, and take in what has ended."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from fairlane.model.errors import FairlaneError
from fairlane.runtime import direct
from fairlane.runtime.launch import host_of
from fairlane.service import queue
from fairlane.simulation.processes import Script
from tests.unit.runtime.daemons import InlineThreads, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(direct, "host_of", partial(host_of, threads=InlineThreads))
    world = World(tmp_path)
    world.policy('capacity.mode = "direct"\n')
    return world


def test_tasks_start_at_once_and_their_ends_are_taken_in(world: World) -> None:
    world.add("a", "b")
    world.add("c", needs=["a"])
    assert direct.start_direct(world.context, ["a", "b", "c"]) == ("a", "b")
    assert world.statuses() == {"a": "running", "b": "running", "c": "queued"}
    assert direct.take_in(world.context) == ()
    world.clock.wait(2.0)
    world.clock.wait(2.0)
    assert direct.take_in(world.context) == ("a", "b")
    assert direct.start_ready(world.context) == ("c",)


def test_a_launch_that_fails_is_reported_and_the_others_start(world: World) -> None:
    world.scripts["a"] = Script(refused=FairlaneError("no such program"))
    world.add("a", "b")
    assert direct.start_direct(world.context, ["a", "b"]) == ("b",)
    (attempt,) = world.attempts("a")
    assert (attempt.outcome, attempt.detail) == ("launch_failed", "no such program")


def test_a_lease_that_may_not_start_by_now_is_given_back_without_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("a")
    real = direct._launch

    def paused_before(context, leases, pause=0.0):
        queue.pause(context, "task:a", "wait")
        return real(context, leases, pause)

    monkeypatch.setattr(direct, "_launch", paused_before)
    assert direct.start_direct(world.context, ["a"]) == ()
    assert world.statuses() == {"a": "queued"}
    assert world.clock.monotonic() == 0.0


def test_a_command_starts_nothing_beside_a_daemon(world: World) -> None:
    started: list[tuple[str, ...]] = []

    def tick(daemon: object) -> None:
        started.append(direct.start_ready(world.context))

    daemon = world.daemon("up", tick)
    world.clock.after(1.0, daemon.stop)
    daemon.run()
    assert set(started) == {()}
