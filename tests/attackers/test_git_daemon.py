"""Agents that attack git through a real daemon, both executors: they are parked, others go on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import conftest as daemon
from tests.daemon.world import World
from tests.workspaces.yard import git, look, make_repository

pytestmark = pytest.mark.slow
world = daemon.world

#: What an agent does before it reports success -> what the reason names. Each has its own project.
IN_WORKTREES = {
    "refs": ("mv $D/refs/heads $D/kept; ln -s $O/refs/heads $D/refs/heads", "refs/heads is a link"),
    "objects": ("mv $D/objects $D/kept; ln -s $O/objects $D/objects", "objects is a link"),
    "config": ("mv $D/config $D/kept; ln -s $O/config $D/config", "config is a link"),
    "gitdir": ("mv $D $D.kept; echo gitdir: $O > $D", "leads to"),
    "borrowed": ("echo $O/objects > $D/objects/info/alternates", "reads objects of"),
    "pipe": ("rm $D/config; mkfifo $D/config", "config is a pipe"),
    "tree": ("mkfifo .gitattributes", ".gitattributes is a pipe"),
    "hooks": ("mkdir -p $D/hooks; tee $D/hooks/post-commit $D/hooks/post-merge < $P", ""),
    "monitor": ("git config core.fsmonitor $P; git config core.hooksPath $P", ""),
}  # fmt: skip
IN_CLONES = {
    "plain": ("git add -A; git commit -qm work", ""),
    "monitor": ("git config core.fsmonitor $P; git config core.hooksPath $P", ""),
    "stolen": ("echo $O/objects >> .git/objects/info/alternates", "reads objects of"),
    "elsewhere": ("rm -r .git; echo gitdir: $O > .git", "is no clone of"),
    "waits": ("rm .git/config; mkfifo .git/config", "config is a pipe"),
    "nested": ("cp -r $O/.. sub", "repositories inside that cannot be committed: sub"),
}  # fmt: skip


@pytest.mark.parametrize("executor", ["process", "tmux"])
@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_hostile_agents_are_parked_by_name(
    world: World, tmp_path: Path, mode: str, executor: str
) -> None:
    if executor == "tmux" and shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    world.settings(f'worker.executor = "{executor}"\nworkspaces.mode = "{mode}"\n')
    other, witness = make_repository(tmp_path / "other"), tmp_path / "witness"
    (other / "README").write_text("half done\n")
    program = tmp_path / "hostile"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{witness}"\n')
    program.chmod(0o755)
    before, tricks = look(other), IN_WORKTREES if mode == "worktree" else IN_CLONES
    for name, (script, _) in tricks.items():
        repo = make_repository(tmp_path / name)
        world.fairlane("project", "add", name, "--repo", str(repo))
        start = f"D={repo}/.git; O={other}/.git; P={program}; echo work > work"
        world.add(_task(name, f"{start}; {script}"))
    world.run()
    for name, (_, words) in tricks.items():
        task = world.fairlane("show", name)["task"]
        assert (name, task["status"]) == (name, "parked" if words else "done"), task["reason"]
        assert words in task["reason"]
        if not words:
            assert git(tmp_path / name, "show", "main:work") == "work"
    world.fairlane("workspaces")
    world.fairlane("workspaces", "clean")
    assert not witness.exists(), witness.read_text()
    assert look(other) == before
    assert git(other, "branch", "--format=%(refname:short)") == "main"


def _task(name: str, script: str) -> dict[str, Any]:
    command = ["sh", "-c", script]
    return {"id": name, "project": name, "command": command, "merge": "merge", "max_attempts": 1}


def test_whose_hooks_run_is_a_field_of_the_project(world: World, tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "web")
    hook = repo / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\necho "Reviewed: yes" >> "$1"\n')
    hook.chmod(0o755)
    added = world.fairlane("project", "add", "web", "--repo", str(repo))
    assert added["project"]["hooks"] == "ours"
    world.add({"id": "plain", "project": "web", "command": ["touch", "work"]})
    world.run()
    changed = world.fairlane("project", "set", "web", "--hooks", "repo")
    assert changed["project"]["hooks"] == "repo"
    world.add({"id": "hooked", "project": "web", "command": ["touch", "work"]})
    world.run()
    assert "Reviewed" not in git(repo, "log", "-1", "--format=%B", "fairlane/plain")
    assert "Reviewed: yes" in git(repo, "log", "-1", "--format=%B", "fairlane/hooked")
    assert world.fairlane("project", "show", "web")["project"]["hooks"] == "repo"
