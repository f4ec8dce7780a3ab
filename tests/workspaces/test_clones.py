"""Clones: a git folder of its own for each task; its branch is fetched afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fairlane import workspaces
from fairlane.model.errors import Refused
from fairlane.model.project import Project
from fairlane.model.task import Status, Task
from fairlane.workspaces import mode_for, upload
from tests.workspaces.yard import Yard, commit, git, look

pytestmark = pytest.mark.slow

MERGING = Task("t1", merge="merge")


@pytest.fixture(params=["bwrap", "plain"])
def clones(yard: Yard, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A yard in which tasks work in clones; fetched with bwrap, and without it."""
    if request.param == "bwrap" and not upload._has_bwrap():
        pytest.skip("bwrap cannot run here")
    if request.param == "plain":
        monkeypatch.setattr(upload, "_has_bwrap", lambda: False)
    yard.workspaces(mode="clone")
    return yard


def test_a_task_gets_a_repository_of_its_own_that_shares_objects(clones: Yard) -> None:
    before = look(clones.repo)
    place = clones.prepare("t1")
    assert place.path == clones.home / "worktrees" / "web" / "t1"
    assert (place.branch, place.base, place.mode) == ("fairlane/t1", "main", "clone")
    assert place.reads == (clones.repo / ".git" / "objects",)
    assert git(place.path, "status", "--porcelain", "--branch") == "## fairlane/t1"
    assert git(place.path, "rev-parse", "--git-common-dir") == ".git"
    assert git(place.path, "rev-parse", "origin/main") == git(clones.repo, "rev-parse", "main")
    assert git(place.path, "count-objects") == "0 objects, 0 kilobytes"
    assert git(place.path, "config", "user.name") == "Ada"
    assert (place.path / "src" / "code").read_text() == "code\n"
    assert git(clones.repo, "worktree", "list").count("\n") == 0
    assert look(clones.repo) == before


def test_commits_and_the_rest_reach_the_repository(clones: Yard) -> None:
    place = clones.prepare("t1")
    (place.path / "first").write_text("")
    kept = commit(place.path, "by the agent")
    (place.path / "README").unlink()
    (place.path / "rest").write_text("")
    assert clones.finish(Task("t1", title="The rest")) == ""
    assert clones.log("fairlane/t1") == ["The rest", "by the agent", "first"]
    assert git(clones.repo, "rev-parse", "fairlane/t1~1") == kept
    assert clones.files("fairlane/t1") == ["first", "rest", "src/code"]
    assert git(place.path, "status", "--porcelain", "--branch") == "## fairlane/t1"
    assert git(place.path, "rev-parse", "HEAD") == git(clones.repo, "rev-parse", "fairlane/t1")
    assert git(clones.repo, "for-each-ref", "refs/fairlane/fetched") == ""
    assert git(clones.repo, "fsck") == ""


def test_it_is_merged(clones: Yard) -> None:
    clones.work(MERGING)
    (clones.repo / "other").write_text("")
    commit(clones.repo, "meanwhile")
    assert clones.finish(MERGING) == ""
    assert clones.log("main")[0] == "Merge fairlane/t1"
    assert (clones.repo / "t1").exists()
    assert git(clones.repo, "status", "--porcelain") == ""


def test_a_retry_goes_on_in_the_same_clone(clones: Yard) -> None:
    place = clones.work("t1")
    assert clones.finish("t1") == ""
    (place.path / "half").write_text("not committed")
    (place.path / ".git" / "index.lock").write_text("")
    assert clones.prepare("t1") == place
    assert (place.path / "half").exists()
    commit(place.path, "second")
    git(place.path, "commit", "-q", "--amend", "-m", "second, better")
    assert clones.finish("t1") == ""
    assert clones.log("fairlane/t1") == ["second, better", "t1", "first"]


def test_an_agent_may_write_its_own_history_anew(clones: Yard) -> None:
    place = clones.work("t1")
    assert clones.finish("t1") == ""
    git(place.path, "commit", "-q", "--amend", "-m", "better")
    git(place.path, "pack-refs", "--all")
    git(place.path, "gc", "-q", "--prune=now")
    assert clones.finish("t1") == ""
    assert clones.log("fairlane/t1") == ["better", "first"]


def test_commits_that_a_person_added_are_not_lost(clones: Yard) -> None:
    place = clones.work("t1")
    assert clones.finish("t1") == ""
    git(clones.repo, "checkout", "-q", "fairlane/t1")
    theirs = commit(clones.repo, "by a person")
    (place.path / "more").write_text("")
    commit(place.path, "by the agent")
    assert "fairlane/t1 is checked out in" in clones.finish("t1")
    git(clones.repo, "checkout", "-q", "main")
    problem = clones.finish("t1")
    assert f"fairlane/t1 has commits that {place.path} does not have" in problem
    assert git(clones.repo, "rev-parse", "fairlane/t1") == theirs
    clones.prepare("t1")
    git(place.path, "merge", "-q", "-m", "both", "origin/fairlane/t1")
    assert clones.finish("t1") == ""
    assert clones.log("fairlane/t1")[0] == "both"


def test_work_on_another_branch_is_parked(clones: Yard) -> None:
    place = clones.work("t1")
    git(place.path, "checkout", "-q", "-b", "my-idea")
    commit(place.path, "elsewhere")
    assert f"{place.path} is on my-idea, not on fairlane/t1" in clones.finish("t1")
    assert clones.log("fairlane/t1") == ["first"]


def test_a_crash_while_it_is_made_is_made_good(clones: Yard) -> None:
    place = clones.prepare("t1")
    (own,) = (clones.home / "git").glob("*/clones/web/t1")
    (own / "being_made").touch()
    (place.path / "README").unlink()
    shutil.rmtree(place.path / ".git" / "refs")
    clones.work("t1")
    assert clones.finish("t1") == ""
    assert clones.files("fairlane/t1") == ["README", "src/code", "t1"]


def test_a_deleted_clone_is_made_again_from_its_branch(clones: Yard) -> None:
    place = clones.work("t1")
    assert clones.finish("t1") == ""
    shutil.rmtree(place.path)
    assert (clones.prepare("t1").path / "t1").exists()


def test_what_is_in_the_way_stays(clones: Yard) -> None:
    clones.workspaces(mode="worktree")
    place = clones.work("t1")
    clones.workspaces(mode="clone")
    with pytest.raises(Refused, match="is a worktree, and a clone is needed"):
        clones.prepare("t1")
    assert (place.path / "t1").exists()


def test_the_command_for_pull_requests_sees_the_fetched_branch(
    clones: Yard, tmp_path: Path
) -> None:
    task, remote, told = Task("t1", merge="pr"), tmp_path / "remote.git", tmp_path / "told"
    git(clones.repo, "clone", "-q", "--bare", ".", str(remote))
    git(clones.repo, "remote", "add", "origin", str(remote))
    place = clones.work(task)
    git(place.path, "config", "core.fsmonitor", "/bin/false")
    script = "(pwd; git symbolic-ref --short HEAD; git remote get-url origin; git status -s)"
    clones.change(pr=("sh", "-c", f"{script} > {told}"))
    assert clones.finish(task) == ""
    assert told.read_text().splitlines() == [str(clones.repo), "fairlane/t1", str(remote)]


def test_a_shallow_repository_is_cloned_too(clones: Yard, tmp_path: Path) -> None:
    for name in ("second", "third"):
        commit(clones.repo, name)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{clones.repo}", "shallow")
    clones.repo = tmp_path / "shallow"
    clones.change(name="shallow", repo=str(clones.repo))
    place = clones.work("t1")
    assert git(place.path, "log", "--format=%s") == "third"
    assert clones.finish("t1") == ""
    assert clones.log("fairlane/t1") == ["t1", "third"]


@pytest.mark.parametrize("kind", ["ours", "branch", "stash", "detached", "rest"])
def test_nothing_unfetched_or_unmerged_is_removed(clones: Yard, kind: str) -> None:
    place = clones.work(MERGING)
    assert clones.finish(MERGING) == ""
    assert clones.leftovers(t1=Status.DONE)["t1"].keep == ""
    safe = clones.leftovers(t1=Status.DONE)["t1"]
    (place.path / "more").write_text("")
    git(place.path, "add", "-A")
    if kind == "branch":
        git(place.path, "checkout", "-q", "-b", "idea")
    if kind == "detached":
        git(place.path, "checkout", "-q", "--detach")
    if kind == "stash":
        git(place.path, "stash", "-q")
    elif kind != "rest":
        commit(place.path, "more")
    keep = clones.leftovers(t1=Status.DONE)["t1"].keep
    assert keep == {
        "ours": "fairlane/t1 is not fetched",
        "branch": "idea is not fetched",
        "stash": "refs/stash is not fetched",
        "detached": "HEAD is not fetched",
        "rest": "it has changes that are not committed",
    }[kind]  # fmt: skip
    with pytest.raises(Refused, match="stays"):
        workspaces.clean(clones.home, safe, clones.project)
    assert place.path.exists()


def test_cleaning_removes_clone_and_branch(clones: Yard) -> None:
    place = clones.work(MERGING)
    assert clones.leftovers(t1=Status.PARKED)["t1"].keep == "its task is parked"
    assert clones.leftovers()["t1"].keep == "it has changes that are not committed"
    assert clones.finish(MERGING) == ""
    leftover = clones.leftovers(t1=Status.DONE)["t1"]
    assert (leftover.branch, leftover.keep) == ("fairlane/t1", "")
    workspaces.clean(clones.home, leftover, clones.project)
    assert not place.path.exists()
    assert clones.branches() == ["main"]
    assert list((clones.home / "git").glob("*/clones/web/t1")) == []
    assert clones.leftovers() == {}


@pytest.mark.parametrize(
    ("mode", "names", "plain", "sandboxed"),
    [
        ("worktree", None, "worktree", "clone"),
        ("clone", None, "clone", "clone"),
        ("pool", None, "worktree", "clone"),
        ("pool", ("w1",), "pool", "named workspaces"),
        ("clone", ("w1",), "pool", "named workspaces"),
        ("shared", None, "shared", 'workspaces.mode = "shared"'),
    ],
)
def test_which_mode_an_attempt_uses(
    yard: Yard, mode: str, names: tuple[str, ...] | None, plain: str, sandboxed: str
) -> None:
    yard.workspaces(mode=mode)
    yard.change(workspaces=names)
    assert mode_for(yard.settings, yard.project) == plain
    if sandboxed == "clone":
        assert mode_for(yard.settings, yard.project, sandboxed=True) == "clone"
        return
    with pytest.raises(Refused, match=f"a sandboxed agent of web cannot work in {sandboxed}"):
        mode_for(yard.settings, yard.project, sandboxed=True)


def test_without_a_repository_there_is_no_mode(yard: Yard) -> None:
    assert mode_for(yard.settings, Project("web"), sandboxed=True) == "none"
