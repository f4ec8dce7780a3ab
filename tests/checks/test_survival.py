"""Checks survive the daemon; none runs twice at once; what they check is what is recorded."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.checks.coders import Coders, starts, waits
from tests.daemon.world import World, is_zombie, until
from tests.workspaces.yard import commit, git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def runner_of(folder: Path) -> dict[str, Any]:
    """What the runner of a check says of itself, once the check runs."""

    def told() -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((folder / "runner.json").read_text())
        except (OSError, ValueError):
            return None
        return found if "agent_pid" in found else None

    found: dict[str, Any] = until(told)
    return found


def has_passed(world: World, number: int) -> bool:
    return bool(world.attempts("a")[0].checks[number].get("passed"))


def test_the_next_daemon_goes_on_with_the_same_process(
    world: World, coders: Coders, tmp_path: Path
) -> None:
    gates = [tmp_path / f"gate-{number}" for number in range(2)]
    coders.does("a", 1, "echo right > answer")
    coders.add("a", *((f"c{number}", waits(gate)) for number, gate in enumerate(gates)))
    for gate in gates:
        pid = world.up()
        until(partial(starts, gate))
        world.kill(pid)
        pid = world.up()
        gate.touch()
        until(partial(has_passed, world, gates.index(gate)))
        world.kill(pid)
    world.run()
    assert coders.outcomes("a") == [("succeeded", "")]
    assert [len(starts(gate)) for gate in gates] == [1, 1]
    assert coders.file("a", "answer") == "right"
    assert world.processes() == []
    assert world.sound()


@pytest.mark.parametrize("code", [0, 5])
def test_one_that_ended_while_no_daemon_ran_counts_as_it_ended(
    world: World, coders: Coders, tmp_path: Path, code: int
) -> None:
    gate = tmp_path / "gate"
    coders.add("a", ("waits", f"{waits(gate)}; exit {code}"), session="fresh")
    pid = world.up()
    until(lambda: starts(gate))
    runner = runner_of(coders.run_folder("a", "1.check.0"))
    world.kill(pid)
    gate.touch()
    until(lambda: is_zombie(runner["pid"]))
    world.run()
    failed = ("check_failed", "check waits: exit 5")
    assert coders.outcomes("a") == [failed if code else ("succeeded", "")]
    assert len(starts(gate)) == 1


def test_down_and_up_while_one_runs(world: World, coders: Coders, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    coders.add("a", ("waits", waits(gate)))
    world.up()
    until(lambda: starts(gate))
    world.fairlane("down")
    assert world.statuses() == {"a": "running"}
    world.up()
    gate.touch()
    coders.until("a", "done")
    assert len(starts(gate)) == 1
    assert coders.outcomes("a") == [("succeeded", "")]


@pytest.mark.parametrize("down", [False, True])
def test_one_whose_runner_was_killed_runs_again_alone(
    world: World, coders: Coders, tmp_path: Path, down: bool
) -> None:
    gate, alone = tmp_path / "gate", tmp_path / "alone"
    script = f'mkdir "{alone}" || exit 9; trap "rmdir {alone}" EXIT; {waits(gate)}'
    coders.add("a", ("waits", script))
    pid = world.up()
    until(lambda: starts(gate))
    runner = runner_of(coders.run_folder("a", "1.check.0"))
    if down:
        world.kill(pid)
    world.kill(runner["agent_pid"])  # its trap does not run
    alone.rmdir()
    world.kill(runner["pid"])
    if down:
        world.up()
    until(lambda: len(starts(gate)) == 2 or coders.outcomes("a")[0][0])
    gate.touch()
    coders.until("a", "done", "parked")
    assert coders.outcomes("a")[-1] == ("succeeded", "")
    assert world.processes() == []


def test_what_a_killed_runner_left_is_gone_before_it_runs_again(
    world: World, coders: Coders, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    coders.add("a", ("waits", waits(gate)))
    world.up()
    until(lambda: starts(gate))
    first = runner_of(coders.run_folder("a", "1.check.0"))
    world.kill(first["pid"])
    until(lambda: len(starts(gate)) == 2)
    assert is_zombie(first["agent_pid"])
    gate.touch()
    coders.until("a", "done")
    assert coders.outcomes("a") == [("succeeded", "")]
    assert world.processes() == []


def test_a_cancel_while_no_daemon_runs_stops_it(
    world: World, coders: Coders, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    coders.add("a", ("waits", waits(gate)))
    pid = world.up()
    until(lambda: starts(gate))
    world.freeze(pid)  # it neither stops the check itself, nor lets the command do so
    world.fairlane("cancel", "a")
    world.kill(pid)
    world.up()
    coders.until("a", "canceled")
    assert world.processes() == []
    assert len(starts(gate)) == 1


@pytest.mark.parametrize("killed", [False, True])
def test_what_was_checked_is_recorded_and_merged_and_nothing_else(
    world: World, coders: Coders, tmp_path: Path, killed: bool
) -> None:
    """A check that writes, commits and moves the branch adds nothing to the work."""
    gate = tmp_path / "gate"
    more = "echo more > more; git add more; git -c user.name=x -c user.email=x commit -qm more"
    coders.does("a", 1, "echo right > answer")
    coders.add("a", ("moves", f"{more}; echo rest > rest; {waits(gate)}"), merge="merge")
    pid = world.up()
    until(lambda: starts(gate))
    if killed:
        world.kill(pid)
        world.up()
    gate.touch()
    coders.until("a", "done")
    work = world.attempts("a")[0].work
    assert [row["path"] for row in work["files"]] == ["answer"]
    assert git(coders.repo, "show", f"{work['head']}:answer") == "right"
    names = ("ls-tree", "--name-only")
    assert "more" not in git(coders.repo, *names, work["head"]).split()
    merged = git(coders.repo, *names, "main").split()
    assert "answer" in merged
    assert not {"more", "rest"} & set(merged)
    assert git(coders.repo, "rev-parse", "refs/fairlane/keep/a/1") == work["head"]


def test_an_edited_makefile_is_listed_and_not_merged_by_itself(
    world: World, coders: Coders
) -> None:
    world.fairlane("project", "set", "web", "--check", "make test")
    coders.does("a", 1, "printf 'test:\\n\\t@true\\n' > Makefile; echo wrong > answer")
    coders.add("a", merge="merge")
    coders.does("b", 1, "echo right > answer")
    coders.add("b", merge="merge")
    world.run()
    assert world.statuses() == {"a": "done", "b": "done"}
    work = world.attempts("a")[0].work
    assert work["protected"] == ["Makefile"]
    assert (work["merge"]["state"], work["merge"]["hold"]["code"]) == ("waiting", "approval")
    assert git(coders.repo, "show", "main:answer") == "right"
    assert "sh test.sh" in git(coders.repo, "show", "main:Makefile")


def test_what_one_check_leaves_for_the_next_is_marked(world: World, coders: Coders) -> None:
    """The work runs in the first check, and changes there what the second one runs."""
    world.fairlane("project", "set", "web", "--check", "sh quick.sh", "--check", "make test")
    coders.does("a", 1, "echo wrong > answer; echo 'true' > quick")
    (coders.repo / "quick.sh").write_text("test ! -e quick || printf 'test:\\n' > Makefile\n")
    commit(coders.repo, "a quick check")
    coders.add("a", merge="merge")
    world.run()
    work = world.attempts("a")[0].work
    assert work["protected"] == ["Makefile"]
    assert (work["merge"]["state"], work["merge"]["hold"]["code"]) == ("waiting", "approval")


def test_a_task_without_checks_does_not_change_those_of_others(
    world: World, coders: Coders
) -> None:
    world.fairlane("project", "set", "web", "--check", "make test")
    coders.does("a", 1, "printf 'test:\\n\\t@true\\n' > Makefile")
    coders.add("a", merge="merge", no_checks=True)
    world.run()
    assert world.statuses() == {"a": "done"}
    assert world.attempts("a")[0].work["protected"] == ["Makefile"]
    assert "sh test.sh" in git(coders.repo, "show", "main:Makefile")
