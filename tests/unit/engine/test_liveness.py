"""What is known about an attempt when its lease expires: it runs, left a result, or is gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairlane.clock import VirtualClock
from fairlane.engine.context import Context, run_folder
from fairlane.engine.liveness import gather, observe, state_of
from fairlane.executors.base import Ended, Exit, Gone, Orders, Running
from fairlane.model.task import Attempt
from fairlane.settings import Settings, host_name
from fairlane.simulation.processes import Machine, Script, VirtualExecutor
from fairlane.store.memory.store import MemoryStore

ATTEMPT = Attempt(
    "l1", "t1", "default", "code", None, 1, 1, "box", 0, 5, host=host_name(), executor="fake"
)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    clock = VirtualClock(10)
    context = Context(tmp_path, MemoryStore(), Settings.parse({}), clock, "ann")
    scripts = {"t1": Script(1.0, exit=Exit(3)), "t2": Script(1.0, gone=True)}
    context.executors["fake"] = VirtualExecutor(
        Machine(clock), lambda orders: scripts[orders.folder.parent.name]
    )
    return context


def launched(context: Context, attempt: Attempt) -> Attempt:
    folder = run_folder(context.home, attempt)
    handle = context.executor("fake").launch(Orders(folder, ("agent",), folder, {}))
    return replace(attempt, handle=handle.text)


def test_a_lease_is_over_only_when_its_attempt_is_gone(context: Context) -> None:
    first = launched(context, ATTEMPT)
    second = launched(context, replace(ATTEMPT, lease="l2", task="t2"))
    assert state_of(context, first) == state_of(context, second) == Running()
    assert gather(context, [first, second], 10).gone == frozenset()
    context.clock.wait(2.0)
    context.clock.wait(2.0)
    assert isinstance(state_of(context, first), Ended)
    assert state_of(context, second) == Gone()
    facts = gather(context, [first, second], 10)
    assert (facts.alive(first, 10), facts.alive(second, 10)) == (True, False)


def test_who_has_not_started_by_then_never_does(context: Context) -> None:
    assert observe(context, [ATTEMPT]).gone == {"l1"}
    assert gather(context, [ATTEMPT], 4).gone == frozenset()  # its lease runs on
    assert gather(context, [ATTEMPT], 10).gone == {"l1"}
    assert state_of(context, launched(context, ATTEMPT)) == Gone()


def test_of_an_attempt_elsewhere_nothing_is_known(context: Context) -> None:
    for attempt in (replace(ATTEMPT, host="elsewhere"), replace(ATTEMPT, executor="none")):
        assert state_of(context, attempt) == Gone()
        assert gather(context, [attempt], 10).gone == frozenset()


def test_without_its_executor_an_attempt_is_not_lost(context: Context) -> None:
    attempt = replace(ATTEMPT, executor="removed")
    assert state_of(context, attempt) == Running()
    assert gather(context, [attempt], 10).alive(attempt, 10)
