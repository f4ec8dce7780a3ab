"""What a sandbox shows: never the store, nor what a repository, a task or a terminal could add."""

from __future__ import annotations

import os
import pty
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fairlane.executors.base import socket_of
from fairlane.executors.process import kill_left_over
from fairlane.executors.sandbox import _refuse_store
from fairlane.model.errors import Shortage
from tests.attackers.test_sandbox_walls import KINDS, PROBLEMS, name_of, settle_in
from tests.daemon.world import World
from tests.workspaces.yard import make_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

NEEDS_LANDLOCK = pytest.mark.skipif(bool(PROBLEMS["landlock"]), reason=PROBLEMS["landlock"])


def run_once(world: World, command: list[str], **more: Any) -> Any:
    """How the only attempt of a task ended."""
    world.policy("retry.max_attempts = 1\n")
    world.add({"id": name_of(world), "command": command, "max_attempts": 1} | more)
    world.fairlane("run", "--once")
    return world.attempts(name_of(world))[0]


def said(world: World) -> str:
    return (world.home / "runs" / name_of(world) / "1" / "stdout.log").read_text()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "private" / "key"
    path.parent.mkdir()
    path.write_text("sings")
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["token", "fairlane.db", "fairlane.toml"])
def test_no_file_of_the_home_folder(world: World, kind: str, name: str) -> None:
    settle_in(world, kind, more=f'read = ["{world.home / name}"]\n')
    world.fairlane("list")
    (world.home / "token").touch(0o600)
    attempt = run_once(world, ["true"])
    assert attempt.outcome == "environment"
    assert f"it would show {world.home / name}" in attempt.detail


@pytest.mark.parametrize("kind", KINDS)
def test_no_store_elsewhere(world: World, tmp_path: Path, kind: str) -> None:
    (tmp_path / "else").mkdir()
    more = f'read = ["{tmp_path}/else"]\n[store]\nurl = "sqlite:{tmp_path}/else/other.db"\n'
    settle_in(world, kind, more=more)
    world.policy("retry.max_attempts = 1\n")
    world.fairlane("add", "--id", "t", "--max-attempts", "1", "--", "true")
    world.fairlane("run", "--once")
    attempt = world.fairlane("show", "t")["attempts"][0]
    assert "it would show" in attempt["detail"]


def test_no_home_folder_among_the_programs() -> None:
    with pytest.raises(Shortage, match="it would show /usr, and /usr/state lies in it"):
        _refuse_store(("/usr",), Path("/usr/state"), None)


@pytest.mark.parametrize("kind", KINDS)
def test_no_folder_that_a_repository_names_for_objects(
    world: World, tmp_path: Path, secret: Path, kind: str
) -> None:
    repo = make_repository(tmp_path / "web")
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"{secret.parent}\n")
    settle_in(world, kind)
    world.fairlane("project", "add", "web", "--repo", str(repo))
    attempt = run_once(world, ["cat", str(secret)], project="web")
    assert attempt.outcome == "failed"
    assert said(world) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_no_folder_that_a_task_names_for_logins(world: World, secret: Path, kind: str) -> None:
    more = f"""[agents.mine]
parser = "claude"
argv = ["cat", "{secret}"]
"""
    settle_in(world, kind, more=more)
    task = {"id": "t", "prompt": "x", "agent": "mine", "max_attempts": 1}
    world.add(task | {"env": {"CLAUDE_CONFIG_DIR": str(secret.parent)}})
    world.fairlane("run", "--until-idle")
    assert (world.home / "runs" / "t" / "1" / "stdout.log").read_text() == ""


@pytest.mark.parametrize("kind", KINDS)
def test_no_folder_of_the_daemon_for_a_program_of_the_work_folder(
    world: World, secret: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (secret.parent, world.home / "work" / name_of(world)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tool").write_text(f"#!/bin/sh\ncat {secret}\n")
        (folder / "tool").chmod(0o755)
    monkeypatch.chdir(secret.parent)
    settle_in(world, kind)
    attempt = run_once(world, ["./tool"])
    assert attempt.outcome == "failed"
    assert said(world) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_beside_a_program_of_your_own_folder(
    world: World, secret: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = secret.parent / "tool"
    tool.write_text(f"#!/bin/sh\necho ran; cat {secret}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("HOME", str(secret.parent))
    settle_in(world, kind)
    attempt = run_once(world, [str(tool)])
    assert attempt.outcome == "failed"
    assert said(world) == "ran\n"


@pytest.mark.parametrize("kind", KINDS)
def test_no_folder_that_a_link_in_place_of_the_socket_names(
    world: World, secret: Path, kind: str
) -> None:
    (secret.parent / "socket").write_text("sings")
    folder = socket_of(world.home / "runs" / name_of(world) / "1").parent
    folder.symlink_to(secret.parent)
    try:
        settle_in(world, kind)
        run_once(world, ["cat", str(secret), f"{folder}/key"])
        assert said(world) == ""
        kill_left_over(world.home / "runs" / name_of(world) / "1")
        assert (secret.parent / "socket").read_text() == "sings"
    finally:
        folder.unlink()


@NEEDS_LANDLOCK
def test_no_terminal(world: World) -> None:
    master, terminal = pty.openpty()
    try:
        settle_in(world, "landlock")
        attempt = run_once(world, ["sh", "-c", f"echo x > {os.ttyname(terminal)}"])
        assert attempt.outcome == "failed"
    finally:
        os.close(master)
        os.close(terminal)


@NEEDS_LANDLOCK
def test_landlock_and_tmux_do_not_go_together(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMUX_TMPDIR", folder)
        settle_in(world, "landlock", "tmux")
        world.add({"id": "t", "command": ["true"]})
        world.fairlane("run", "--once")
    assert world.attempts("t")[0].outcome == "environment"
    assert "could have tmux run commands outside" in world.attempts("t")[0].detail
