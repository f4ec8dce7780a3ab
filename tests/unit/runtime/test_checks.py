"""Checks after an agent, in virtual time: passed, failed, stopped, killed, and found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlane.executors.base import Exit
from fairlane.service import projects, tasks
from fairlane.simulation.processes import Script
from tests.sessions import claude_keeps
from tests.unit.runtime.daemons import World

CHECKS = [["make", "test"], {"name": "lint", "argv": ["ruff", "check"], "timeout": "90s"}]
FAILS = Script(exit=Exit(exit_code=2), prints=((0.0, "1 failed\n"),), errors=((0.0, "Error 2\n"),))


def claude(session: str = "s1") -> Script:
    """An agent that can resume."""
    init = {"type": "system", "subtype": "init", "session_id": session}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "Fixed it."}
    lines = "".join(json.dumps(line | {"session_id": session}) + "\n" for line in (init, result))
    return Script(prints=((0.5, lines),))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    claude_keeps(tmp_path / "claude", "s1", tmp_path / "work" / "a")
    world = World(tmp_path)
    world.policy('retry.base = "0s"\n')
    return world


def add(world: World, **fields: object) -> None:
    record: dict[str, object] = {"id": "a", "prompt": "go", "agent": "claude", "checks": CHECKS}
    tasks.add(world.context, [record | fields])
    world.scripts["a"] = claude()
    world.scripts |= {f"a/{n}.check.{k}": Script() for n in range(1, 9) for k in range(2)}


def test_a_task_is_done_when_its_checks_have_passed(world: World) -> None:
    add(world)
    world.run()
    assert world.statuses() == {"a": "done"}
    (attempt,) = world.attempts("a")
    assert [(row["name"], row["exit"], row["passed"]) for row in attempt.checks] == [
        ("make test", 0, True),
        ("lint", 0, True),
    ]
    orders = world.host.launched
    assert [o.folder.name for o in orders] == ["1", "1.check.0", "1.check.1"]
    assert [o.argv for o in orders[1:]] == [("make", "test"), ("ruff", "check")]
    assert [o.timeout for o in orders[1:]] == [1800.0, 90.0]
    assert world.events("checks_started") == [1]
    assert world.events("check_passed") == [2, 3]
    assert world.events("succeeded") == [3]


def test_a_failed_check_resumes_the_session_with_its_output_and_counts_no_failure(
    world: World,
) -> None:
    add(world)
    world.scripts["a/1.check.0"] = FAILS
    world.run()
    assert world.statuses() == {"a": "done"}
    first, second = world.attempts("a")
    assert (first.outcome, first.detail) == ("check_failed", "check make test: exit 2")
    assert second.outcome == "succeeded"
    resumed = next(o for o in world.host.launched if o.folder.name == "2")
    assert resumed.argv[-2:] == ("--resume", "s1")
    assert resumed.stdin is not None
    assert "The check `make test` failed (exit 2)" in resumed.stdin
    assert "> 1 failed\n> Error 2\n" in resumed.stdin
    with world.store.read() as reading:
        task = reading.task("a")
    assert task is not None
    assert (task.failures, task.attempts, task.check_rounds) == (0, 2, 0)


def test_rounds_in_a_row_then_it_fails_like_any_other(world: World) -> None:
    add(world, max_attempts=1)
    world.scripts |= {f"a/{n}.check.0": FAILS for n in range(1, 9)}
    world.run()
    assert world.statuses() == {"a": "parked"}
    assert [row.outcome for row in world.attempts("a")] == ["check_failed"] * 3
    with world.store.read() as reading:
        task = reading.task("a")
    assert task is not None
    assert task.reason == "failed: check make test (attempt 1 of 1)"


def test_an_agent_that_cannot_resume_fails_at_once(world: World) -> None:
    world.scripts["a/1.check.0"] = FAILS
    world.add("a", checks=CHECKS, max_attempts=1)
    world.run()
    assert world.statuses() == {"a": "parked"}
    assert len(world.attempts("a")) == 1


def test_a_failed_agent_is_not_checked(world: World) -> None:
    add(world, max_attempts=1)
    world.scripts["a"] = Script(exit=Exit(exit_code=1))
    world.run()
    assert [o.folder.name for o in world.host.launched] == ["1"]


def test_a_check_that_hangs_is_stopped_at_its_time_limit(world: World) -> None:
    add(world)
    world.scripts["a/1.check.1"] = Script(seconds=None)
    world.run()
    first = world.attempts("a")[0]
    assert (first.outcome, first.detail) == ("check_failed", "check lint: timeout")
    assert world.statuses() == {"a": "done"}


def test_a_check_that_cannot_start_says_which_program_is_missing(world: World) -> None:
    add(world)
    world.scripts["a/1.check.0"] = Script(
        seconds=0.0, exit=Exit(launch_error="make: No such file or directory", errno=2)
    )
    world.run()
    assert world.attempts("a")[0].detail == "check make test: make is not on the PATH"


def test_a_cancel_while_a_check_runs_stops_it(world: World) -> None:
    add(world)
    world.scripts["a/1.check.0"] = Script(seconds=None)
    daemon = world.daemon("up")
    world.clock.after(30.0, lambda: tasks.cancel(world.context, ["a"]))
    world.clock.after(60.0, daemon.stop)
    daemon.run()
    assert world.statuses() == {"a": "canceled"}
    assert world.attempts("a")[0].outcome == "canceled"


def test_the_lease_is_renewed_while_a_check_runs(world: World) -> None:
    world.policy('lease.ttl = "30s"\n')
    add(world)
    world.scripts["a/1.check.0"] = Script(seconds=600.0)
    world.run()
    assert [row.outcome for row in world.attempts("a")] == ["succeeded"]


def test_another_daemon_goes_on_with_the_check_that_runs(world: World) -> None:
    add(world)
    world.scripts["a/1.check.0"] = Script(seconds=100.0)
    world.up(seconds=20.0)
    assert world.statuses() == {"a": "running"}
    world.run()
    assert world.statuses() == {"a": "done"}
    assert [o.folder.name for o in world.host.launched] == ["1", "1.check.0", "1.check.1"]


def test_another_daemon_takes_in_a_check_that_ended_meanwhile(world: World) -> None:
    add(world)
    world.scripts["a/1.check.0"] = Script(seconds=30.0, exit=Exit(exit_code=1))
    world.up(seconds=20.0)
    world.clock.wait(60.0)
    world.run()
    assert world.attempts("a")[0].detail == "check make test: exit 1"
    assert world.statuses() == {"a": "done"}


def test_a_check_whose_runner_was_killed_runs_again_a_few_times(world: World) -> None:
    add(world)
    world.scripts |= {f"a/1.check.0{again}": Script(gone=True) for again in ("", ".2", ".3")}
    world.run()
    first = world.attempts("a")[0]
    assert (first.outcome, first.detail) == (
        "failed",
        "check make test: its runner was killed 3 times",
    )
    assert world.statuses() == {"a": "done"}


def test_a_check_of_a_task_replaces_none_of_its_project(world: World) -> None:
    projects.set_project(world.context, "default", {"checks": [["make", "test"]]})
    add(world, checks=[{"name": "make test", "argv": ["true"]}])
    world.run()
    (attempt,) = world.attempts("a")
    assert [(row["name"], row["argv"]) for row in attempt.checks] == [
        ("make test", ["make", "test"]),
        ("make test (2)", ["true"]),
    ]


def test_a_person_can_leave_the_checks_out(world: World) -> None:
    projects.set_project(world.context, "default", {"checks": [["make", "test"]]})
    add(world, checks=[], no_checks=True)
    world.run()
    assert [o.folder.name for o in world.host.launched] == ["1"]


def test_a_check_gets_no_secrets(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-of-an-agent")
    add(world)
    world.run()
    agent, check, _ = world.host.launched
    assert "ANTHROPIC_API_KEY" in agent.env
    assert set(check.env) <= {"PATH", "HOME", "LANG", "TMPDIR"}
    assert check.calls is None
