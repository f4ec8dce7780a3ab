"""Checks without any daemon: the end of each process calls for the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.app import Fairlane
from fairlane.runtime.lock import holder
from tests.checks.coders import Coders, starts, waits
from tests.daemon.world import World, until
from tests.workspaces.yard import git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

DIRECT = 'capacity.mode = "direct"\nretry.base = "0s"\nretry.jitter = 0\nretry.max_attempts = 1\n'


@pytest.fixture(autouse=True)
def direct(coders: Coders) -> None:
    coders.world.policy(DIRECT)


def add(coders: Coders, task: str, *checks: tuple[str, ...], **more: Any) -> None:
    """In direct mode this very process starts what it adds."""
    with Fairlane(coders.world.home) as lane:
        lane.add([coders.record(task, *checks, **more)])


def test_a_task_gets_done_by_itself(world: World, coders: Coders) -> None:
    coders.does("a", 1, "echo right > answer")
    add(coders, "a", ("one", "grep right answer"), ("two", "test -e Makefile"))
    coders.until("a", "done", "parked")
    assert coders.outcomes("a") == [("succeeded", "")]
    assert [row["passed"] for row in world.attempts("a")[0].checks] == [True, True]
    assert holder(world.home) is None
    assert coders.file("a", "answer") == "right"


def test_a_failed_one_resumes_the_session(world: World, coders: Coders) -> None:
    coders.does("a", 2, "echo right > answer")
    add(coders, "a", ("passes", "cat answer"))
    coders.until("a", "done", "parked")
    assert [outcome for outcome, _ in coders.outcomes("a")] == ["check_failed", "succeeded"]
    assert coders.told("a", 2)["resumes"] == ["session-of-a"]
    assert "The check `passes` failed" in coders.told("a", 2)["prompt"]
    assert world.processes() == []


def test_commands_meanwhile_start_nothing_twice_and_add_nothing_to_the_work(
    world: World, coders: Coders, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    coders.does("a", 1, "echo right > answer")
    add(coders, "a", ("writes", f"echo rest > rest; {waits(gate)}"), ("two", "true"))
    until(lambda: starts(gate))
    for words in (("reclaim",), ("lease",), ("list",), ("reclaim",)):
        world.fairlane(*words)
    assert world.statuses() == {"a": "running"}
    gate.touch()
    coders.until("a", "done", "parked")
    assert coders.outcomes("a") == [("succeeded", "")]
    assert len(starts(gate)) == 1
    names = git(coders.repo, "ls-tree", "--name-only", "fairlane/a").split()
    assert "answer" in names
    assert "rest" not in names
    assert [row["path"] for row in world.attempts("a")[0].work["files"]] == ["answer"]


def test_a_cancel_stops_it(world: World, coders: Coders, tmp_path: Path) -> None:
    add(coders, "a", ("waits", waits(tmp_path / "gate")), ("two", f"touch {tmp_path}/two"))
    until(lambda: starts(tmp_path / "gate"))
    world.fairlane("cancel", "a")
    coders.until("a", "canceled")
    until(lambda: not world.processes())
    assert not (tmp_path / "two").exists()
    assert coders.outcomes("a")[0][0] == "canceled"


def test_a_daemon_that_comes_goes_on(world: World, coders: Coders, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    add(coders, "a", ("waits", waits(gate)), ("two", "true"))
    until(lambda: starts(gate))
    world.up()
    gate.touch()
    coders.until("a", "done", "parked")
    assert coders.outcomes("a") == [("succeeded", "")]
    assert len(starts(gate)) == 1
