"""What tasks left behind is removed only where nothing can be lost."""

from __future__ import annotations

import shutil

import pytest

from fairlane import workspaces
from fairlane.model.task import Status, Task
from tests.workspaces.yard import Yard, commit, git, look

pytestmark = pytest.mark.slow


def merged(yard: Yard, name: str) -> None:
    task = Task(name, merge="merge")
    yard.work(task)
    assert yard.finish(task) == ""


def test_nothing_is_there_at_first(yard: Yard) -> None:
    assert yard.leftovers() == {}


@pytest.mark.parametrize("status", list(Status))
def test_only_what_has_ended_may_go(yard: Yard, status: Status) -> None:
    merged(yard, "t1")
    ended = status in (Status.DONE, Status.CANCELED)
    assert yard.leftovers(t1=status)["t1"].keep == ("" if ended else f"its task is {status}")


def test_what_is_not_committed_stays(yard: Yard) -> None:
    merged(yard, "t1")
    (yard.prepare("t1").path / "more").write_text("x")
    assert "not committed" in yard.leftovers(t1=Status.DONE)["t1"].keep


def test_what_is_not_merged_stays(yard: Yard) -> None:
    yard.work("t1")
    yard.finish("t1")
    leftover = yard.leftovers(t1=Status.DONE)["t1"]
    assert (leftover.branch, leftover.keep) == ("fairlane/t1", "its work is not merged into main")
    git(yard.repo, "merge", "-q", "fairlane/t1")
    assert yard.leftovers(t1=Status.DONE)["t1"].keep == ""


def test_merged_means_into_the_branch_from_which_it_started(yard: Yard) -> None:
    git(yard.repo, "branch", "release")
    task = Task("t1", base="release", merge="merge")
    yard.work(task)
    assert yard.finish(task) == ""
    assert yard.leftovers(t1=Status.DONE)["t1"].keep == ""
    git(yard.repo, "update-ref", "refs/heads/release", "main")
    assert "not merged into release" in yard.leftovers(t1=Status.DONE)["t1"].keep


def test_what_lies_on_no_branch_stays(yard: Yard) -> None:
    place = yard.prepare("t1")
    git(place.path, "checkout", "-q", "--detach")
    commit(place.path, "on no branch")
    assert "not merged" in yard.leftovers(t1=Status.DONE)["t1"].keep


def test_folders_of_the_pool_stay(yard: Yard) -> None:
    yard.change(workspaces=("w1",))
    yard.prepare("t1", "w1")
    assert yard.leftovers()["w1"].keep == "it belongs to the pool"


def test_what_is_no_worktree_stays(yard: Yard) -> None:
    merged(yard, "t1")
    folder = yard.home / "worktrees" / "web"
    (folder / "notes").mkdir()
    (folder / "file").write_text("")
    rows = yard.leftovers(t1=Status.DONE)
    assert rows["notes"].keep == rows["file"].keep == "it is no worktree"
    shutil.rmtree(yard.repo)
    assert yard.leftovers(t1=Status.DONE)["t1"].keep


def test_cleaning_removes_the_worktree_and_its_branch_and_nothing_else(yard: Yard) -> None:
    for name in ("t1", "t2"):
        merged(yard, name)
    before = look(yard.repo)
    leftover = yard.leftovers(t1=Status.DONE)["t1"]
    workspaces.clean(yard.home, leftover, yard.project)
    assert not leftover.path.exists()
    assert yard.branches() == ["fairlane/t2", "main"]
    assert look(yard.repo) == before
    assert set(yard.leftovers()) == {"t2"}
