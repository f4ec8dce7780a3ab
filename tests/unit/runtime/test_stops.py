"""Stops, adoption and other news that come at the worst moment are not missed."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

from fairlane.engine.port import LocalPort
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.record import changed
from fairlane.runtime import direct
from fairlane.runtime.launch import host_of, launch
from fairlane.service import tasks
from fairlane.simulation.processes import Script
from tests.unit.runtime.daemons import InlineThreads, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_is_canceled_before_its_turn_is_not_launched(world: World) -> None:
    world.policy('capacity.spawn_delay = "10s"\n')
    world.scripts = {name: Script(seconds=1000) for name in "ab"}
    world.add("a", "b")
    world.clock.after(5, lambda: tasks.cancel(world.context, ["b"]))
    world.up(100)
    assert world.launched() == ["a"]
    assert world.statuses() == {"a": "running", "b": "canceled"}


def test_what_is_canceled_while_it_is_launched_is_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.scripts = {"a": Script(seconds=1000)}
    world.add("a")
    real = InlineThreads.submit

    def slow(self: InlineThreads, work, *values):  # as a worktree that takes eight seconds
        if "launch" in work.__name__:
            world.clock.after(8, lambda: work(*values))
            return Future()
        return real(self, work, *values)

    monkeypatch.setattr(InlineThreads, "submit", slow)
    world.clock.after(4, lambda: tasks.cancel(world.context, ["a"]))
    world.up(100)
    assert world.launched() == ["a"]
    assert world.statuses() == {"a": "canceled"}


def test_a_budget_that_the_end_of_an_attempt_uses_up_stops_the_others(world: World) -> None:
    """The daemon's own commit asks for it: no other process writes, so nothing else tells it."""
    world.policy('[[budget]]\nscope = "all"\ntokens = 500\nwindow = "5h"\non_exceeded = "stop"\n')
    told = '{"type":"result","outcome":"succeeded","tokens":{"input":600,"output":0}}\n'
    world.scripts = {"a": Script(seconds=20.0, prints=((19.9, told),)), "b": Script(seconds=1000)}
    world.add("a", "b", command=[], prompt="go", agent="demo", estimate_tokens=1)
    world.up(60)  # its leases are renewed after 100 seconds
    assert world.statuses() == {"a": "done", "b": "queued"}
    assert world.attempts("b")[0].outcome == "released"


def test_an_attempt_of_an_executor_that_was_removed_keeps_no_daemon_down(world: World) -> None:
    world.scripts["a"] = Script(seconds=1000)
    world.add("a")
    world.up(5)
    with world.store.write() as tx:
        tx.put_attempts([changed(row, executor="my-cluster") for row in tx.open_attempts()])
    world.add("b")
    world.up(30)
    assert world.statuses() == {"a": "running", "b": "done"}


def test_what_a_command_launched_before_it_died_is_taken_in(world: World) -> None:
    world.policy('capacity.mode = "direct"\ncaps.all = 0\nlease.ttl = "60s"\n')
    leases: list[LocalLeaseDocument] = []

    def lease() -> None:
        world.add("a")
        leases.extend(LocalPort(world.context).lease(only=["a"]).documents)

    world.clock.after(5, lease)
    world.clock.after(6, lambda: launch(host_of(world.context, InlineThreads), leases[0]))
    world.up(200)  # and the command noted no handle: it was killed
    assert world.statuses() == {"a": "done"}


def test_an_interrupted_start_gives_back_what_has_not_begun(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "host_of", partial(host_of, threads=InlineThreads))
    world.policy('capacity.mode = "direct"\ncapacity.spawn_delay = "20s"\n')
    world.add("a", "b", "c")

    def interrupt() -> None:
        raise KeyboardInterrupt

    world.clock.after(5, interrupt)
    with pytest.raises(KeyboardInterrupt):
        direct.start_ready(world.context)
    assert world.statuses() == {"a": "running", "b": "queued", "c": "queued"}
    assert [row.outcome for name in "bc" for row in world.attempts(name)] == ["released"] * 2


def test_a_slow_start_of_many_keeps_its_leases(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "host_of", partial(host_of, threads=InlineThreads))
    world.policy('capacity.mode = "direct"\ncapacity.spawn_delay = "20s"\nlease.ttl = "15s"\n')
    world.scripts = {name: Script(seconds=1000) for name in "abc"}
    world.add("a", "b", "c")
    assert direct.start_ready(world.context) == ("a", "b", "c")
    assert [len(world.attempts(name)) for name in "abc"] == [1, 1, 1]


def test_without_a_daemon_cancel_stops_what_runs_here(world: World) -> None:
    world.policy('capacity.mode = "direct"\n')
    world.scripts = {"a": Script(seconds=1000)}
    world.add("a")
    world.up(5)
    tasks.cancel(world.context, ["a"])
    direct.stop_requested(world.context)
    world.clock.wait(60)
    assert direct.take_in(world.context) == ("a",)
    assert world.statuses() == {"a": "canceled"}
