"""Tasks that build on each other, by real daemons in real repositories."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import World
from tests.workspaces.yard import git, make_repository

pytestmark = pytest.mark.slow

#: Writes a file of its task's name, or what a file of that name in the home folder says to do.
AGENT = """
todo="$FAIRLANE_HOME/todo-$FAIRLANE_TASK"
if test -e "$todo"; then . "$todo"; else echo "work of $FAIRLANE_TASK" > "$FAIRLANE_TASK"; fi
echo "$FAIRLANE_TASK is written."
"""


@pytest.fixture
def repo(world: World, tmp_path: Path) -> Path:
    script = tmp_path / "agent.sh"
    script.write_text(AGENT)
    world.settings(
        f'[worker]\nslots = 4\n[agents.scribe]\nargv = ["sh", "{script}"]\nparser = "plain"\n'
    )
    found = make_repository(tmp_path / "web")
    world.fairlane("project", "add", "web", "--weight", "3", "--repo", str(found))
    return found


def add(world: World, text: str, *words: str) -> None:
    world.fairlane("add", text, "--project", "web", "--agent", "scribe", *words)


def prompt(world: World, task: str, attempt: int = 1) -> str:
    return (world.home / "runs" / task / str(attempt) / "prompt.md").read_text()


def work(world: World, task: str) -> dict[str, Any]:
    found: dict[str, Any] = world.attempts(task)[-1].work
    return found


def test_tests_for_a_fix_that_another_task_made(world: World, repo: Path) -> None:
    add(world, "Fix the login form")
    add(world, "Write tests for the login form", "--need", "t1")
    world.run()
    assert world.statuses() == {"t1": "done", "t2": "done"}
    fix = git(repo, "rev-parse", "fairlane/t1")
    tree = world.home / "worktrees" / "web" / "t2"
    assert git(tree, "merge-base", fix, "HEAD") == fix
    assert (tree / "t1").read_text() == "work of t1\n"
    told = prompt(world, "t2")
    assert told.startswith("Write tests for the login form\n\nWhat came before: ")
    assert "t1, branch fairlane/t1 (its work is in your folder):\n\n> Fix the login form\n" in told
    assert "> Changed: t1 (+1 -0)\n" in told
    assert "> t1 is written.\n" in told
    assert prompt(world, "t1") == "Fix the login form"
    record = work(world, "t2")
    assert (record["start"], record["carried"]) == (fix, [{"task": "t1", "head": fix}])
    assert [row["path"] for row in record["files"]] == ["t2"]


def test_kept_work_does_not_land_through_a_dependent(world: World, repo: Path) -> None:
    add(world, "Fix it")
    add(world, "Test it", "--need", "t1", "--merge", "merge")
    world.run()
    assert world.statuses() == {"t1": "done", "t2": "done"}
    merge = work(world, "t2")["merge"]
    assert (merge["state"], merge["carries"], merge["hold"]["code"]) == (
        "waiting", ["t1"], "carries",
    )  # fmt: skip
    assert git(repo, "log", "--format=%s", "main").splitlines() == ["first"]


def test_work_that_is_merged_is_in_the_base_already(world: World, repo: Path) -> None:
    add(world, "Fix it", "--merge", "merge")
    add(world, "Test it", "--need", "t1", "--merge", "merge")
    world.run()
    assert world.statuses() == {"t1": "done", "t2": "done"}
    assert work(world, "t2")["carried"] == []
    assert work(world, "t2")["merge"]["state"] == "merged"
    assert {"t1", "t2"} <= {path.name for path in repo.iterdir()}


def test_needs_that_conflict_park_at_once_and_name_both(world: World, repo: Path) -> None:
    for name in ("t1", "t2"):
        (world.home / f"todo-{name}").write_text(f"echo {name} > README\n")
    add(world, "One")
    add(world, "Two")
    add(world, "Three", "--need", "t1", "--need", "t2")
    world.run()
    assert world.statuses() == {"t1": "done", "t2": "done", "t3": "parked"}
    (attempt,) = world.attempts("t3")
    assert attempt.outcome == "failed"
    reason = world.fairlane("show", "t3")["task"]["reason"]
    assert "the work of t1 and t2 conflicts: README" in reason
    assert "`fairlane retry t3`" in reason
    git(repo, "merge", "-q", "--no-edit", "fairlane/t1")
    git(repo, "merge", "-q", "--no-edit", "-X", "theirs", "fairlane/t2")
    world.fairlane("retry", "t3")
    world.run()
    assert world.statuses()["t3"] == "done"
    assert git(repo, "show", "fairlane/t3:README") == "t2"


def test_a_retry_takes_in_what_is_new_in_its_needs(world: World, repo: Path) -> None:
    todo = world.home / "todo-t2"
    todo.write_text("echo half > half\nexit 1\n")
    add(world, "Fix it")
    add(world, "Test it", "--need", "t1", "--max-attempts", "1")
    world.run()
    assert world.statuses() == {"t1": "done", "t2": "parked"}
    (world.home / "todo-t1").write_text("echo more > more\n")
    world.add({"id": "t1"}, again=True)
    world.run()
    assert len(world.attempts("t1")) == 2
    todo.write_text("ls > listing\n")
    world.fairlane("retry", "t2")
    world.run()
    assert world.statuses() == {"t1": "done", "t2": "done"}
    listing = git(repo, "show", "fairlane/t2:listing").split()
    assert {"half", "more", "t1"} <= set(listing)
    record = work(world, "t2")
    assert sorted(row["path"] for row in record["files"]) == ["half", "listing"]
    assert record["carried"] == [{"task": "t1", "head": git(repo, "rev-parse", "fairlane/t1")}]
    assert "> Changed: half (+1 -0)\n" in prompt(world, "t2", 2)


def test_work_that_is_gone_parks_and_the_hint_starts_it_from_the_base(
    world: World, repo: Path
) -> None:
    add(world, "Fix it")
    world.run()
    fix = git(repo, "rev-parse", "fairlane/t1")
    git(repo, "worktree", "remove", "--force", str(world.home / "worktrees" / "web" / "t1"))
    for name in git(repo, "for-each-ref", "--format=%(refname)").split():
        if name != "refs/heads/main":
            git(repo, "update-ref", "-d", name)
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    add(world, "Test it", "--need", "t1")
    world.run()
    reason = world.fairlane("show", "t2")["task"]["reason"]
    assert f"does not have the work of t1 ({fix[:12]}), from which t2 starts" in reason
    for command in re.findall(r"`fairlane ([^`]+)`", reason):
        world.fairlane(*command.split())
    world.run()
    assert world.statuses()["t2"] == "done"
    assert work(world, "t2")["carried"] == []
