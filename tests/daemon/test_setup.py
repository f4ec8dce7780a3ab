"""A project's setup runs once in a new worktree, as the agent does, before it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.daemon.world import World, until
from tests.workspaces.yard import commit, git, make_repository

pytestmark = pytest.mark.slow

NOTE = 'echo "$PWD" >> "$HOME/setups"; env > "$HOME/env"; echo ready > .ready'


@pytest.fixture
def web(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose worktrees must be set up; what it ignores is made by the setup."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SECRET_TOKEN", "xyzzy-12345")
    repo = make_repository(tmp_path / "web")
    (repo / ".gitignore").write_text(".ready\nnode_modules\n")
    (repo / "lock").write_text("1\n")
    commit(repo, "more")
    world.fairlane("project", "add", "web", "--repo", str(repo))
    return repo


def set_up(world: World, script: str, *words: str) -> None:
    argv = f"sh -c {json.dumps(script)}" if "'" in script else f"sh -c '{script}'"
    world.fairlane("project", "set", "web", "--setup", argv, *words)


def task(name: str, script: str = "cat .ready > said", **fields: object) -> dict[str, object]:
    return {"id": name, "project": "web", "command": ["sh", "-c", script], **fields}


def setups(tmp_path: Path) -> list[str]:
    file = tmp_path / "person" / "setups"
    return file.read_text().splitlines() if file.exists() else []


def test_it_runs_once_before_the_agent_and_without_secrets(
    world: World, web: Path, tmp_path: Path
) -> None:
    set_up(world, NOTE)
    world.policy('retry.base = "0s"\n')
    world.add(task("a"), task("b", "cat .ready && test $FAIRLANE_ATTEMPT = 2"))
    world.run()
    assert world.statuses() == {"a": "done", "b": "done"}
    folders = [str(world.home / "worktrees" / "web" / name) for name in "ab"]
    assert sorted(setups(tmp_path)) == folders  # not again for the second attempt of b
    assert git(web, "show", "fairlane/a:said") == "ready"
    names = {line.partition("=")[0] for line in (tmp_path / "person" / "env").read_text().split()}
    assert "SECRET_TOKEN" not in names
    assert not [name for name in names if name.startswith("FAIRLANE_LEASE")]
    (attempt,) = world.attempts("a")
    (row,) = attempt.checks
    assert (row["name"], row["passed"], row["exit"]) == ("setup", True, 0)
    assert attempt.note != "setup"


def test_a_failing_setup_starts_no_agent_and_shows_its_output(world: World, web: Path) -> None:
    set_up(world, "echo installing; echo E404 left-pad >&2; exit 7")
    world.add(task("a", f"touch {world.marks}/agent", max_attempts=1))
    world.run()
    assert world.statuses() == {"a": "parked"}
    (attempt,) = world.attempts("a")
    assert attempt.outcome == "launch_failed"
    assert attempt.detail == "setup: exit 7: installing | E404 left-pad"
    assert not (world.marks / "agent").exists()
    assert "E404 left-pad" in world.fairlane("why", "a")["verdict"]
    told = world.fairlane("logs", "a", "--check", "setup", "--raw")
    assert "installing" in json.dumps(told)


def test_a_program_that_is_missing_is_named(world: World, web: Path) -> None:
    world.fairlane("project", "set", "web", "--setup", "no-such-program ci")
    world.add(task("a", max_attempts=1))
    world.run()
    assert world.attempts("a")[0].detail == "setup: no-such-program is not on the PATH"


def test_it_runs_again_when_its_files_change(world: World, web: Path, tmp_path: Path) -> None:
    set_up(world, NOTE, "--setup-files", "lock")
    world.policy('retry.base = "0s"\n')
    script = "echo x >> other; test $FAIRLANE_ATTEMPT = 3 || { test $FAIRLANE_ATTEMPT = 1 || "
    script += "echo 2 > lock; exit 1; }"
    world.add(task("a", script))
    world.run()
    assert world.statuses() == {"a": "done"}
    assert len(setups(tmp_path)) == 2  # for the first attempt, and after the second changed it


def test_a_pool_is_set_up_once_a_folder(world: World, web: Path, tmp_path: Path) -> None:
    set_up(world, NOTE)
    world.fairlane("project", "set", "web", "--workspace", "w1")
    world.add(task("a"), task("b"), task("c"))
    world.run()
    assert set(world.statuses().values()) == {"done"}
    assert setups(tmp_path) == [str(world.home / "worktrees" / "web" / "w1")]


def test_a_worktree_that_is_made_anew_is_set_up_anew(
    world: World, web: Path, tmp_path: Path
) -> None:
    set_up(world, NOTE)
    world.add(task("a", merge="merge"))
    world.run()
    assert len(world.fairlane("workspaces", "clean")["removed"]) == 1
    world.fairlane("add", "--id", "a", "--again")
    world.run()
    assert len(setups(tmp_path)) == 2


def test_one_that_hangs_and_forks_is_ended_whole(world: World, web: Path) -> None:
    world.settings('[workspaces]\nsetup_timeout = "1s"\n[agents.shell]\nstop = ["1s", "1s"]\n')
    fork = f'sh -c "trap : INT TERM; echo up > {world.marks}/child; sleep 600" & sleep 600'
    world.fairlane("project", "set", "web", "--setup", f"sh -c '{fork}'")
    world.add(task("a", f"touch {world.marks}/agent", max_attempts=1))
    world.run()
    assert world.attempts("a")[0].detail.startswith("setup: timeout")
    assert (world.marks / "child").exists()
    until(lambda: not world.processes())
    assert not (world.marks / "agent").exists()


def test_a_task_that_is_canceled_during_its_setup_stops(world: World, web: Path) -> None:
    world.fairlane("project", "set", "web", "--setup", f"sh -c 'touch {world.marks}/up; sleep 600'")
    world.add(task("a", f"touch {world.marks}/agent"))
    world.up()
    until((world.marks / "up").exists)
    assert world.fairlane("show", "a")["task"]["status"] == "running"
    world.fairlane("cancel", "a")
    until(lambda: world.statuses() == {"a": "canceled"})
    until(lambda: not world.processes())
    assert not (world.marks / "agent").exists()


@pytest.mark.parametrize("ends", ["meanwhile", "later"])
def test_a_daemon_that_is_killed_finds_the_setup_again(
    world: World, web: Path, tmp_path: Path, ends: str
) -> None:
    wait = f"while ! test -e {world.marks}/go; do sleep 0.05; done"
    set_up(world, f"{NOTE}; touch {world.marks}/up; {wait}; touch {world.marks}/set")
    world.add(task("a"))
    daemon = world.up()
    until((world.marks / "up").exists)
    world.kill(daemon)
    if ends == "meanwhile":
        (world.marks / "go").touch()
        until((world.marks / "set").exists)
    world.up()
    (world.marks / "go").touch()
    until(lambda: world.statuses() == {"a": "done"})
    assert len(setups(tmp_path)) == 1
    assert [attempt.outcome for attempt in world.attempts("a")] == ["succeeded"]


def test_without_a_daemon_the_agent_follows_the_setup(
    world: World, web: Path, tmp_path: Path
) -> None:
    set_up(world, NOTE)
    world.policy('capacity.mode = "direct"\n')
    added = world.fairlane("add", "--id", "a", "--project", "web", "--", "cat", ".ready")
    assert added["tasks"][0]["status"] == "running"
    until(lambda: world.statuses() == {"a": "done"})
    assert len(setups(tmp_path)) == 1
