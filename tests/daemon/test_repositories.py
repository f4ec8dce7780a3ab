"""Tasks in real repositories, from `fairlane run` to commits on branches."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlane.executors.base import Gone, Handle
from fairlane.executors.process import ProcessExecutor
from fairlane.model.project import Project
from tests.daemon.world import World, is_zombie, until
from tests.workspaces.yard import commit, git, look, make_repository

pytestmark = pytest.mark.slow


@pytest.fixture
def repositories(world: World, tmp_path: Path) -> dict[str, Path]:
    """Two projects with a repository each."""
    found = {name: make_repository(tmp_path / name) for name in ("web", "api")}
    for name, folder in found.items():
        git(folder, "clone", "-q", "--bare", ".", str(tmp_path / f"{name}.git"))
        git(folder, "remote", "add", "origin", str(tmp_path / f"{name}.git"))
        world.fairlane("project", "add", name, "--repo", str(folder))
    return found


def writing(name: str, project: str, more: str = "", **fields: Any) -> dict[str, Any]:
    """A task that writes a file and leaves it uncommitted."""
    script = f"{more or 'true'}; pwd > $FAIRLANE_TASK"
    return {"id": name, "project": project, "command": ["sh", "-c", script], **fields}


def log(repo: Path, branch: str) -> list[str]:
    return git(repo, "log", "--format=%s", branch).splitlines()


def test_eight_tasks_in_two_repositories(world: World, repositories: dict[str, Path]) -> None:
    before = {name: look(folder) for name, folder in repositories.items()}
    names = [(f"{project}-{number}", project) for project in repositories for number in range(4)]
    world.add(*(writing(name, project) for name, project in names))
    world.run()
    assert set(world.statuses().values()) == {"done"}
    for name, project in names:
        branch = f"fairlane/{name}"
        folder = git(repositories[project], "show", f"{branch}:{name}")
        assert folder == str(world.home / "worktrees" / project / name)
        assert log(repositories[project], branch) == [name, "first"]
    assert {name: look(folder) for name, folder in repositories.items()} == before
    rows = world.fairlane("workspaces")["workspaces"]
    assert {row["keep"] for row in rows} == {"its work is not merged into main"}
    assert world.fairlane("workspaces", "clean")["removed"] == []


def test_merges_one_after_the_other_and_cleaning_up(
    world: World, repositories: dict[str, Path]
) -> None:
    web = repositories["web"]
    world.add(*(writing(f"m{number}", "web", merge="merge") for number in range(4)))
    world.run()
    assert set(world.statuses().values()) == {"done"}
    assert {f"m{number}" for number in range(4)} <= set(look(web)["files"])
    assert git(web, "status", "--porcelain") == ""
    assert len(world.fairlane("workspaces", "clean", "--dry-run")["removed"]) == 4
    assert len(world.fairlane("workspaces", "clean")["removed"]) == 4
    assert world.fairlane("workspaces")["workspaces"] == []
    assert git(web, "branch", "--format=%(refname:short)") == "main"


def test_a_conflict_and_a_dirty_checkout_park_with_their_reason(
    world: World, repositories: dict[str, Path]
) -> None:
    web, api = repositories["web"], repositories["api"]
    hold = f'while ! test -e "{world.marks}/go"; do sleep 0.05; done'
    more = f'echo start >> "{world.marks}/$FAIRLANE_TASK"; {hold}; echo agent > README'
    world.add(
        writing("conflict", "web", more, merge="merge"),
        writing("dirty", "api", more, merge="merge"),
    )
    world.up()
    world.started("conflict")
    world.started("dirty")
    (web / "README").write_text("person\n")
    commit(web, "by a person")
    (api / "README").write_text("half done\n")
    (world.marks / "go").write_text("")
    until(lambda: set(world.statuses().values()) == {"parked"})
    reasons = {
        name: world.fairlane("show", name)["task"]["reason"] for name in ("conflict", "dirty")
    }
    assert "merge conflict with main: README" in reasons["conflict"]
    assert "changes that are not committed" in reasons["dirty"]
    assert log(web, "fairlane/conflict") == ["conflict", "first"]
    assert (api / "README").read_text() == "half done\n"
    git(api, "checkout", "-q", "README")
    world.fairlane("retry", "dirty")
    until(lambda: world.statuses()["dirty"] == "done")
    assert (api / "README").read_text() == "agent\n"


def test_a_retry_goes_on_in_the_same_worktree(world: World, repositories: dict[str, Path]) -> None:
    script = 'echo $FAIRLANE_ATTEMPT >> tries; test "$FAIRLANE_ATTEMPT" = 2'
    world.add({"id": "t1", "project": "web", "command": ["sh", "-c", script]})
    world.run()
    assert [each.outcome for each in world.attempts("t1")] == ["failed", "succeeded"]
    assert git(repositories["web"], "show", "fairlane/t1:tries").split() == ["1", "2"]


def test_a_hostile_agent_runs_nothing_later_and_reaches_no_other_repository(
    world: World, repositories: dict[str, Path], tmp_path: Path
) -> None:
    web, api = repositories["web"], repositories["api"]
    (api / "README").write_text("half done\n")
    before, witness = look(api), tmp_path / "witness"
    program = tmp_path / "hostile"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{witness}"\n')
    program.chmod(0o755)
    hooks = ("post-commit", "prepare-commit-msg", "reference-transaction", "post-merge")
    copies = "; ".join(f"cp {program} {web}/.git/hooks/{hook}" for hook in hooks)
    monitor = f"git config --file .git/config core.fsmonitor {program}"
    agents = {
        "hooks": f"mkdir -p {web}/.git/hooks; {copies}",
        "monitor": f"rm .git; cp -r {api}/.git .git; {monitor}",
        "nested": f"cp -r {api} sub; cd sub; {monitor}; cd ..",
        "elsewhere": f"echo gitdir: {api}/.git > .git",
        "link": f'cd ..; rm -r "$FAIRLANE_TASK"; ln -s {api} "$FAIRLANE_TASK"; exit 0',
    }
    fields: dict[str, Any] = {"merge": "merge", "max_attempts": 1}
    world.add(*(writing(name, "web", more, **fields) for name, more in agents.items()))
    world.run()
    expected = {name: "done" if name == "hooks" else "parked" for name in agents}
    assert world.statuses() == expected
    for name in ("monitor", "elsewhere", "link"):
        reason = world.fairlane("show", name)["task"]["reason"]
        assert "is no worktree of" in reason
        assert "`fairlane workspaces`" in reason
    assert "sub" in world.fairlane("show", "nested")["task"]["reason"]
    keeps = {row["name"]: row["keep"] for row in world.fairlane("workspaces")["workspaces"]}
    assert keeps.pop("hooks") is None
    assert keeps.pop("nested") == "its task is parked"
    assert {keep.partition(":")[0] for keep in keeps.values()} == {"not safe"}
    assert [row["name"] for row in world.fairlane("workspaces", "clean")["removed"]] == ["hooks"]
    world.fairlane("retry", "monitor", "elsewhere", "link")
    world.run()
    assert world.statuses() == expected
    assert not witness.exists(), witness.read_text()
    assert look(api) == before


def overlapping(name: str, project: str) -> dict[str, Any]:
    """A task that fails where another one is in its folder."""
    script = "mkdir taken || exit 9; sleep 0.2; rmdir taken"
    return {"id": name, "project": project, "command": ["sh", "-c", script], "max_attempts": 1}


def test_shared_means_one_at_a_time(world: World, repositories: dict[str, Path]) -> None:
    world.settings('[worker]\nslots = 8\n[workspaces]\nmode = "shared"\n')
    world.add(*(overlapping(f"s{number}", "web") for number in range(4)))
    world.add(*(overlapping(f"a{number}", "api") for number in range(2)))
    assert len(world.fairlane("plan")["picks"]) == 2
    assert world.fairlane("why", "s3")["holds"][0]["code"] == "workspace"
    world.run()
    assert set(world.statuses().values()) == {"done"}
    assert not (world.home / "worktrees").exists()
    assert git(repositories["web"], "branch", "--format=%(refname:short)") == "main"


def test_two_projects_with_one_shared_repository_take_turns(
    world: World, repositories: dict[str, Path]
) -> None:
    world.settings('[worker]\nslots = 8\n[workspaces]\nmode = "shared"\n')
    world.policy('retry.base = "100ms"\nretry.jitter = 0\n')
    world.fairlane("project", "add", "twin", "--repo", str(repositories["web"]))
    world.add(overlapping("a", "web"), overlapping("b", "twin"))
    world.run()
    assert world.statuses() == {"a": "done", "b": "done"}
    outcomes = [each.outcome for name in "ab" for each in world.attempts(name)]
    assert set(outcomes) == {"succeeded", "released"}


def test_a_pool_is_used_by_as_many_as_it_has_folders(
    world: World, repositories: dict[str, Path]
) -> None:
    world.fairlane("project", "set", "web", "--workspace", "w1", "--workspace", "w2")
    world.add(*(overlapping(f"p{number}", "web") for number in range(6)))
    assert len(world.fairlane("plan")["picks"]) == 2
    world.run()
    assert set(world.statuses().values()) == {"done"}
    folders = sorted(path.name for path in (world.home / "worktrees" / "web").iterdir())
    assert folders == ["w1", "w2"]
    assert {row["keep"] for row in world.fairlane("workspaces")["workspaces"]} == {
        "it belongs to the pool"
    }


def test_a_repository_that_is_gone_fails_the_launch_and_nothing_else(
    world: World, repositories: dict[str, Path], tmp_path: Path
) -> None:
    world.policy('retry.base = "0s"\nretry.jitter = 0\nbreaker.half_open_after = "none"\n')
    repositories["web"].rename(tmp_path / "moved")
    world.add(writing("t1", "web"), writing("t2", "api"))
    world.run()
    assert world.statuses() == {"t1": "parked", "t2": "done"}
    assert "is not there" in world.fairlane("show", "t1")["task"]["reason"]
    assert {each.outcome for each in world.attempts("t1")} == {"launch_failed"}


def test_variables_of_git_do_not_lead_agents_elsewhere(
    world: World, repositories: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(repositories["api"] / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(repositories["api"]))
    world.add(writing("t1", "web", "git commit -q --allow-empty -m agent"))
    world.run()
    assert log(repositories["web"], "fairlane/t1") == ["t1", "agent", "first"]
    assert log(repositories["api"], "main") == ["first"]


def test_a_slow_command_of_one_project_holds_up_nobody_else(
    world: World, repositories: dict[str, Path]
) -> None:
    """The command that opens a pull request waits for the net, for instance."""
    slow = f'touch "{world.marks}/asked"; while ! test -e "{world.marks}/go"; do sleep 0.05; done'
    with world.context() as context, context.store.write() as tx:
        tx.put(replace(tx.table(Project)["web"], pr=("sh", "-c", slow)))
    world.policy('lease.ttl = "1s"\n')
    world.add(writing("offered", "web", merge="pr"))
    world.up()
    world.started("asked")
    expires = world.attempts("offered")[0].expires_at
    world.add(writing("other", "api"), world.marking("plain", 0.1))
    until(lambda: [world.statuses()[name] for name in ("other", "plain")] == ["done", "done"])
    until(lambda: world.attempts("offered")[0].expires_at > expires)  # its lease is kept
    assert world.statuses()["offered"] == "running"
    (world.marks / "go").write_text("")
    until(lambda: world.statuses()["offered"] == "done")
    assert len(world.attempts("offered")) == 1


def test_what_is_being_settled_is_finished_before_the_daemon_leaves(
    world: World, repositories: dict[str, Path]
) -> None:
    slow = f'touch "{world.marks}/asked"; sleep 1; echo once >> "{world.marks}/asked"'
    with world.context() as context, context.store.write() as tx:
        tx.put(replace(tx.table(Project)["web"], pr=("sh", "-c", slow)))
    world.add(writing("offered", "web", merge="pr"))
    world.up()
    world.started("asked")
    world.fairlane("down")
    assert world.statuses()["offered"] == "done"
    world.run()
    assert (world.marks / "asked").read_text() == "once\n"


def test_other_children_keep_their_exit_status(tmp_path: Path) -> None:
    """A thread that runs git must learn how git ended."""
    child = subprocess.Popen(["sh", "-c", "exit 3"])
    until(lambda: is_zombie(child.pid))
    assert ProcessExecutor().poll(Handle(tmp_path / "runs" / "a" / "1")) == Gone()
    assert child.wait() == 3


def test_cleaning_leaves_alone_where_somebody_works_and_goes_on_after_a_refusal(
    world: World, repositories: dict[str, Path]
) -> None:
    world.add(writing("locked", "web", merge="merge"), writing("free", "web", merge="merge"))
    world.run()
    git(repositories["web"], "worktree", "lock", str(world.home / "worktrees" / "web" / "locked"))
    world.fairlane("project", "set", "api", "--workspace", "w1")
    world.add({"project": "api", **world.marking("busy", 3600)})
    world.up()
    world.started("busy")
    world.fairlane("project", "set", "api", "--workspace", "w2")
    keeps = {row["name"]: row["keep"] for row in world.fairlane("workspaces")["workspaces"]}
    assert keeps == {"locked": None, "free": None, "w1": "busy works in it"}
    told = world.fairlane("workspaces", "clean")
    assert [row["name"] for row in told["removed"]] == ["free"]
    assert [row["name"] for row in told["refused"]] == ["locked"]
    assert (world.home / "worktrees" / "api" / "w1").is_dir()
