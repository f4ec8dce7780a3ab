"""One error of an executor, a thread or a caller costs nobody else anything."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from fairlane.engine import attempts
from fairlane.engine.context import Context
from fairlane.engine.look.workers import Asker
from fairlane.executors.base import Handle
from fairlane.service import pull, tasks
from fairlane.settings import Settings, host_name
from fairlane.simulation.processes import Machine, Script, VirtualExecutor
from fairlane.store.sqlite.store import SqliteStore
from tests.unit.contexts import TestContext
from tests.unit.runtime import daemons
from tests.unit.runtime.daemons import World

NO_FILES = OSError(24, "Too many open files")


def fail_once(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    number: int,
    error: Exception,
    counts: Callable[..., bool] = lambda *values: True,
) -> None:
    """The call of this number raises."""
    calls, real = [0], getattr(owner, name)

    def call(self, *values, **named):
        calls[0] += counts(*values)
        if calls[0] == number and counts(*values):
            raise error
        return real(self, *values, **named)

    monkeypatch.setattr(owner, name, call)


def test_a_bad_result_of_a_caller_ends_nothing(tmp_path: Path) -> None:
    office = TestContext(tmp_path, store=SqliteStore.open(tmp_path / "x.db"))
    office.add({"id": "a"})
    lease = office.lease()[0]["lease"]
    with pytest.raises(TypeError):
        pull.complete(office.context, lease, result={"at": datetime.min})
    assert office.status_of("a") == ["leased"]
    pull.complete(office.context, lease)
    assert office.status_of("a") == ["done"]


def test_an_attempt_that_cannot_be_watched_yet_is_watched_later(tmp_path, monkeypatch) -> None:
    world = World(tmp_path)
    fail_once(monkeypatch, VirtualExecutor, "watch", 2, NO_FILES)
    world.scripts = {name: Script(seconds=20) for name in "abcd"}
    world.add(*"abcd")
    world.up(120)
    for name in "abcd":
        (attempt,) = world.attempts(name)
        assert attempt.outcome == "succeeded"
        assert attempt.ended_at is not None
        assert attempt.ended_at - daemons.NOON < 30_000_000


def test_a_stop_that_failed_is_sent_again(tmp_path, monkeypatch) -> None:
    world = World(tmp_path)
    world.scripts = {"a": Script(seconds=1000)}
    world.add("a")
    fail_once(monkeypatch, VirtualExecutor, "stop", 1, NO_FILES)
    world.clock.after(5, lambda: tasks.cancel(world.context, ["a"]))
    world.up(300)
    assert world.statuses() == {"a": "canceled"}


def test_a_lease_that_waits_for_its_launch_is_renewed(tmp_path) -> None:
    world = World(tmp_path)
    world.policy('lease.ttl = "30s"\ncapacity.spawn_delay = "20s"\n')
    world.add(*"abc")
    world.clock.after(25, lambda: waiting.append(world.statuses()["c"]))
    waiting: list[str] = []
    world.up(300)
    assert waiting == ["leased"]
    assert [attempt.outcome for attempt in world.attempts("c")] == ["succeeded"]


def test_the_executor_of_an_attempt_watches_over_it(tmp_path) -> None:
    world = World(tmp_path)
    world.scripts = {"a": Script(seconds=100)}
    world.add("a")
    world.up(5)
    world.settings = Settings.parse({"worker": {"name": "box", "executor": "tmux"}})
    before, other = world.new_context, Machine(world.clock)

    def new_context() -> Context:
        context = before()
        context.executors["tmux"] = VirtualExecutor(other, world._script)
        return context

    world.new_context = new_context  # type: ignore[method-assign]
    world.up(5)
    assert [attempt.outcome for attempt in world.attempts("a")] == [None]
    world.up(200)
    assert [attempt.outcome for attempt in world.attempts("a")] == ["succeeded"]


def test_an_executor_that_cannot_tell_blocks_nobody_else(tmp_path, monkeypatch) -> None:
    world = World(tmp_path)
    world.policy('lease.ttl = "30s"\n')
    world.scripts = {"a": Script(seconds=1000)}
    world.add("a")
    world.up(5)

    def poll(self: VirtualExecutor, handle: Handle) -> None:
        raise OSError(5, "the cluster is away")

    monkeypatch.setattr(VirtualExecutor, "poll", poll)
    world.clock.elapsed += 60
    world.add("b")
    leased = attempts.lease(world.new_context(), Asker("pull"))
    assert [document["task"] for document in leased.documents] == ["b"]


def test_an_idle_daemon_takes_back_a_lease_that_never_started(tmp_path) -> None:
    world = World(tmp_path)
    world.policy('lease.ttl = "30s"\ncapacity.mode = "direct"\n')
    world.add("w")

    def dies_before_its_launch() -> None:
        world.add("a")
        asker = Asker("box", None, "process", host_name())
        attempts.lease(world.new_context(), asker, only=["a"])

    world.clock.after(5, dies_before_its_launch)
    world.up(300)
    assert [attempt.outcome for attempt in world.attempts("a")] == ["lost", "succeeded"]
