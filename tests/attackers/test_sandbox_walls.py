"""An agent in a sandbox reaches its own folders, and nothing else, by either kind and executor."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.executors.sandbox import machine
from fairlane.service.home.setup import home_token
from tests.daemon import conftest as daemon
from tests.daemon.world import World, until
from tests.workspaces.yard import git, make_repository

pytestmark = pytest.mark.slow
world = daemon.world

PROBLEMS = {"bwrap": machine.bwrap_problem(), "landlock": machine.landlock_problem()}
KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(bool(problem), reason=problem))
    for kind, problem in PROBLEMS.items()
]
EXECUTORS = ("process", "tmux")
#: Landlock and tmux do not go together.
PAIRS = [
    pytest.param(kind, executor, marks=pytest.mark.skipif(bool(problem), reason=problem))
    for kind, problem in PROBLEMS.items()
    for executor in EXECUTORS
    if (kind, executor) != ("landlock", "tmux")
]
#: Tries to read and to change what it is given, and to get out; says what worked. Whatever works
#: must do no harm here: it changes canaries alone, and opens what it must not change.
BURGLAR = """
import ctypes, json, os, socket, sys
told = json.loads(sys.argv[1])
won = []
def attempt(name, deed):
    try:
        deed()
    except BaseException:
        return
    won.append(name)
def write(path):
    os.write(os.open(path, os.O_WRONLY | os.O_APPEND), b"burglar")
def look_at(pid):
    open(f"/proc/{pid}/environ", "rb").read()
def mount():
    os.mkdir("mnt")
    libc = ctypes.CDLL(None)
    if libc.mount(b"none", b"mnt", b"tmpfs", 0, 0):
        raise OSError
    libc.umount(b"mnt")
def disk():
    os.mknod("disk", 0o60600, os.makedev(254, 0))
    try:
        open("disk", "rb").close()
    finally:
        os.unlink("disk")
for path in told["secret"]:
    attempt(f"read {path}", lambda: open(path, "rb").read(1))
    parent = f"/proc/{os.getppid()}/root{path}"
    attempt(f"read {path} by another root", lambda: open(parent, "rb").read(1))
    attempt(f"list {path}", lambda: os.listdir(path))
for path in told["canaries"]:
    attempt(f"link {path}", lambda: os.link(path, "linked"))
    attempt(f"write {path}", lambda: write(path))
    attempt(f"cut {path}", lambda: os.truncate(path, 0))
    attempt(f"remove {path}", lambda: os.unlink(path))
    attempt(f"rename {path}", lambda: os.rename(path, "taken"))
    os.symlink(path, "ln")
    attempt(f"read {path} by a link", lambda: open("ln").read())
    os.unlink("ln")
if told["canaries"]:
    attempt("look at another process", lambda: look_at(told["pid"]))
    for name in ("sys/kernel/core_pattern", "sys/kernel/modprobe", "sysrq-trigger"):
        attempt(f"open {name}", lambda: os.open(f"/proc/{name}", os.O_WRONLY))
    attempt("make a disk", disk)
    attempt("mount", mount)
    attempt("chroot", lambda: os.chroot("."))
if told["port"]:
    attempt("connect", lambda: socket.create_connection(("127.0.0.1", told["port"]), 30))
for folder in (".", os.environ["FAIRLANE_ARTIFACTS"], os.environ.get("TMPDIR", ".")):
    with open(os.path.join(folder, "mine"), "w") as file:
        file.write(json.dumps(won))
"""


def name_of(world: World) -> str:
    """A task's id that no other test has: sessions of tmux are named after it."""
    return f"t-{world.home.parent.name[-12:]}".replace("_", "-")


def settle_in(world: World, kind: str, executor: str = "process", more: str = "") -> None:
    world.settings(f'[worker]\nexecutor = "{executor}"\n[sandbox]\nkind = "{kind}"\n{more}')


def burglar(world: World, *canaries: Path, port: int = 0, **more: Any) -> dict[str, Any]:
    home = world.home
    own = [home / name for name in ("fairlane.db", "token", "fairlane.toml", "runs")]
    secret = [*canaries, *own, "/etc/shadow", "/etc/gshadow"]
    told = {"secret": [*map(str, secret)], "canaries": [*map(str, canaries)]}
    told |= {"pid": os.getpid(), "port": port} | more
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    return {"id": name_of(world), "command": [python, "-c", BURGLAR, json.dumps(told)]}


def won(world: World) -> Any:
    return json.loads((world.home / "artifacts" / name_of(world) / "mine").read_text())


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file outside, and what is in it."""
    path = tmp_path / "canary"
    path.write_text("sings")
    return path


@pytest.mark.parametrize(("kind", "executor"), PAIRS)
def test_a_burglar_gets_nothing(world: World, canary: Path, kind: str, executor: str) -> None:
    settle_in(world, kind, executor)
    home_token(world.home)
    other = world.home / "work" / "other" / "secret"
    other.parent.mkdir(parents=True)
    other.write_text("sings")
    world.add(burglar(world, canary, other))
    world.run()
    assert world.statuses() == {name_of(world): "done"}
    assert won(world) == []
    assert (canary.read_text(), other.read_text()) == ("sings", "sings")
    assert (world.home / "work" / name_of(world) / "mine").exists()
    assert not (world.home / "runs" / name_of(world) / "1" / "tmp").exists()


def test_without_a_sandbox_a_burglar_reads_the_store(world: World) -> None:
    world.add(burglar(world))  # without canaries it reads, and changes nothing
    world.run()
    assert f"read {world.home / 'fairlane.db'}" in won(world)


@pytest.mark.parametrize("kind", KINDS)
def test_other_work_and_the_repository_are_out_of_reach(
    world: World, tmp_path: Path, kind: str
) -> None:
    repo = make_repository(tmp_path / "web")
    settle_in(world, kind)
    world.fairlane("project", "add", "web", "--repo", str(repo))
    other = world.home / "worktrees" / "web" / "other" / "code"
    other.parent.mkdir(parents=True)
    other.write_text("sings")
    places = other, repo / "README", repo / ".git" / "config"
    world.add(burglar(world, *places) | {"project": "web"})
    world.run()
    assert world.statuses() == {name_of(world): "done"}
    assert won(world) == []
    assert git(repo, "show", f"fairlane/{name_of(world)}:mine") == "[]"


@pytest.mark.parametrize("kind", KINDS)
def test_git_commits_without_the_settings_of_its_user(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """They hold aliases and credentials, and git refuses to work where it cannot read them."""
    user = tmp_path / "user"
    user.mkdir()
    (user / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")
    monkeypatch.setenv("HOME", str(user))
    repo = make_repository(tmp_path / "web")
    settle_in(world, kind)
    world.fairlane("project", "add", "web", "--repo", str(repo))
    commit = ["git", "commit", "-q", "--allow-empty", "-m", "by the agent"]
    world.add({"id": name_of(world), "project": "web", "command": commit})
    world.run()
    assert world.statuses() == {name_of(world): "done"}
    assert git(repo, "log", "-1", "--format=%s", f"fairlane/{name_of(world)}") == "by the agent"


@pytest.mark.skipif(bool(PROBLEMS["bwrap"]), reason=PROBLEMS["bwrap"])
@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_there_unless_it_is_switched_off(world: World, network: bool) -> None:
    import socket

    settle_in(world, "bwrap", more=f"network = {str(network).lower()}\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        world.add(burglar(world, port=server.getsockname()[1]))
        world.run()
    assert won(world) == (["connect"] if network else [])


@pytest.mark.parametrize("kind", KINDS)
def test_named_folders_are_shown(world: World, tmp_path: Path, kind: str) -> None:
    for name in ("shown", "given"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("seen")
    settle_in(world, kind, more=f'read = ["{tmp_path}/shown"]\nwrite = ["{tmp_path}/given"]\n')
    script = "cat ../shown/file > copy && ! echo x > ../shown/new"
    words = ["sh", "-c", f"cd {tmp_path}/given && {script}"]
    world.add({"id": "t", "command": words})
    world.run()
    assert world.statuses() == {"t": "done"}
    assert (tmp_path / "given" / "copy").read_text() == "seen"


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_holds_the_store_is_not_shown(world: World, kind: str) -> None:
    settle_in(world, kind, more=f'read = ["{world.home.parent}"]\n')
    world.add({"id": "t", "command": ["true"], "max_attempts": 1})
    world.up()
    until(lambda: [each.outcome for each in world.attempts("t")][:1] == ["environment"])
    detail = world.attempts("t")[0].detail
    assert detail.startswith(f"the sandbox cannot be made: it would show {world.home.parent}, ")
    world.fairlane("down")
    assert world.statuses() == {"t": "queued"}


def test_an_agent_does_not_run_where_its_sandbox_cannot_be_made(
    world: World, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = world.home / "tools"
    tools.mkdir()
    for name in ("sh", "git"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    settle_in(world, "bwrap")
    world.add({"id": "t", "command": ["/bin/sh", "-c", f"echo ran > {canary}"]})
    world.up()
    until(lambda: world.attempts("t"))
    until(lambda: world.attempts("t")[0].outcome)
    world.fairlane("down")
    first = world.attempts("t")[0]
    assert first.outcome == "environment"
    assert first.detail == "the sandbox cannot be made: bwrap is not installed"
    assert canary.read_text() == "sings"


def test_an_agent_does_not_run_where_bubblewrap_fails(
    world: World, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = world.home / "tools"
    tools.mkdir()
    (tools / "bwrap").write_text('#!/bin/sh\necho "bwrap: no namespaces here" >&2\nexit 1\n')
    (tools / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    settle_in(world, "bwrap")
    world.add({"id": "t", "command": ["sh", "-c", f"echo ran > {canary}"]})
    world.up()
    until(lambda: world.attempts("t") and world.attempts("t")[0].outcome)
    world.fairlane("down")
    first = world.attempts("t")[0]
    assert first.outcome == "environment"
    assert first.detail == "the sandbox cannot be made: bwrap: no namespaces here"
    assert canary.read_text() == "sings"
