"""A daemon dies at any call to the engine or the executor; the next one runs nothing twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fairlane.daemon.main import RunOptions
from fairlane.engine.context import Context
from fairlane.engine.port import LocalPort
from fairlane.runtime import launch
from fairlane.simulation.processes import Script, VirtualExecutor
from tests.unit.runtime.daemons import FAILS, World

PORT = (
    "lease",
    "blocked",
    "start",
    "renew",
    "stops",
    "progress",
    "finish",
    "open_here",
    "present",
    "checked",
)
EXECUTOR = ("launch", "poll", "watch", "adopt", "revoke", "clean_up", "output")
LINES = (
    (2.0, '{"type":"usage","tokens":{"input":7,"output":3}}\n'),
    (5.0, '{"type":"result","outcome":"succeeded"}\n'),
)

ENDS = {"a": "done", "b": "done", "long": "done", "bad": "parked"}

#: The quick test dies at one of so many calls, the slow one at each.
STRIDE = 7
#: Of a second daemon: to recover, and to plan once.
RECOVERY_CALLS = 30


class Crash(BaseException):
    """The end of a process: nobody handles it."""


class Death:
    """Counts calls; at one of them the process dies, before or after it is done."""

    def __init__(self, at: int, done: bool) -> None:
        self._at, self._done = at, done
        self.calls: list[str] = []
        self.dead = False

    def wrap(self, target: object, names: tuple[str, ...]) -> None:
        for name in names:
            setattr(target, name, self._dying(name, getattr(target, name)))

    def _dying(self, name, call):
        def perform(*args, **kwargs):
            if self.dead:
                raise Crash(name)
            self.calls.append(name)
            self.dead = len(self.calls) == self._at
            if self.dead and not self._done:
                raise Crash(name)
            answer = call(*args, **kwargs)
            if self.dead:
                raise Crash(name)
            return answer

        return perform


def story(world: World, deaths: int = 1) -> None:
    """Successes, a dependent, a failure, and an agent that is running for long.

    Each death can cost an attempt that was leased and had not started.
    """
    rules = 'retry.base = "0s"\ncaps.all = 2\nlease.ttl = "12s"\n'
    world.policy(f"retry.max_attempts = {deaths + 1}\n{rules}")
    world.scripts |= {"bad": FAILS, "long": Script(seconds=6.0, prints=LINES)}
    world.add("a", "bad")
    world.add("long", command=[], prompt="go", agent="demo")
    world.add("b", needs=["a"], checks=[["make", "test"], ["make", "lint"]])


def live_until_death(world: World, monkeypatch: pytest.MonkeyPatch, death: Death) -> None:
    """One daemon, with its calls counted."""

    class Port(LocalPort):
        def __init__(self, context: Context) -> None:
            super().__init__(context)
            death.wrap(self, PORT)

    with monkeypatch.context() as patched:
        patched.setattr(launch, "LocalPort", Port)
        daemon = world.daemon()
        executor = daemon.context.executor()
        assert isinstance(executor, VirtualExecutor)
        death.wrap(executor, EXECUTOR)
        try:
            daemon.run(RunOptions(until_idle=True))
        except Crash:
            assert death.dead
        else:
            assert not death.dead


def calls_of_a_whole_life(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    folder.mkdir()
    world, death = World(folder), Death(0, done=False)
    story(world)
    live_until_death(world, monkeypatch, death)
    return death.calls


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("stride", [STRIDE, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_call_it_dies_at_nothing_is_lost_and_nothing_runs_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool, stride: int
) -> None:
    calls = calls_of_a_whole_life(tmp_path / "whole", monkeypatch)
    assert set(PORT) - {"stops"} <= set(calls)
    for at in range(1 + stride // 2 * done, len(calls) + 1, stride):
        home = tmp_path / f"{at}"
        home.mkdir()
        world, death = World(home), Death(at, done)
        story(world)
        live_until_death(world, monkeypatch, death)
        assert death.dead, at
        world.run()
        nothing_ran_twice(world, f"died at call {at}, {death.calls[-1]}")


def nothing_ran_twice(world: World, where: str) -> None:
    assert world.statuses() == ENDS, where
    launched = [orders.folder for orders in world.host.launched]
    assert len(set(launched)) == len(launched), where
    tasks = Counter(folder.parent.name for folder in launched)
    assert (tasks["a"], tasks["b"], tasks["long"]) == (1, 3, 1), where  # b with two checks


@pytest.mark.slow
@pytest.mark.parametrize("first", ["launch", "start", "finish"])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_second_daemon_that_dies_while_it_recovers_leaves_no_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool, first: str
) -> None:
    died_at = calls_of_a_whole_life(tmp_path / "whole", monkeypatch).index(first) + 1
    seen: set[str] = set()
    for at in range(1, RECOVERY_CALLS + 1):
        home = tmp_path / f"{at}"
        home.mkdir()
        world, death = World(home), Death(at, done)
        story(world, deaths=2)
        live_until_death(world, monkeypatch, Death(died_at, done=False))
        live_until_death(world, monkeypatch, death)
        seen |= set(death.calls)
        world.run()
        nothing_ran_twice(world, f"died at {first}, then at call {at}, {death.calls[-1]}")
    assert {"open_here", "poll"} <= seen
    if first == "launch":  # it was leased and never started: nothing of it may start any more
        assert {"revoke", "clean_up"} <= seen
