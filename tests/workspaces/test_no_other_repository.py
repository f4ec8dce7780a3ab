"""A folder that is no longer the task's worktree: nothing is written, and a person is told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane import workspaces
from fairlane.model.errors import FairlaneError
from fairlane.model.task import Status, Task
from tests.workspaces.hostile import Hostile
from tests.workspaces.yard import commit, git, make_repository

pytestmark = pytest.mark.slow

MERGING = Task("t1", merge="merge")


def own(hostile: Hostile) -> Path:
    return hostile.common / "worktrees" / "t1"


def a_repository_with_a_monitor(hostile: Hostile, path: Path) -> None:
    (path / ".git").unlink()
    git(path, "init", "-q", "-b", "fairlane/t1")
    git(path, "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-mx")
    git(path, "config", "core.fsmonitor", str(hostile.program))


def the_git_folder_of_another_repository(hostile: Hostile, path: Path) -> None:
    git(hostile.other, "checkout", "-q", "-b", "fairlane/t1")
    (path / ".git").write_text(f"gitdir: {hostile.other}/.git\n")


def a_worktree_of_another_repository(hostile: Hostile, path: Path) -> None:
    linked = hostile.other.parent / "linked"
    git(hostile.other, "worktree", "add", "-q", "-b", "fairlane/t1", str(linked))
    (path / ".git").write_text((linked / ".git").read_text())


def another_checkout_by_a_link(hostile: Hostile, path: Path) -> None:
    git(hostile.other, "checkout", "-q", "-b", "fairlane/t1")
    shutil.rmtree(path)
    path.symlink_to(hostile.other)


def a_link_to_nowhere(hostile: Hostile, path: Path) -> None:
    shutil.rmtree(path)
    path.symlink_to(hostile.other.parent / "nowhere")


def a_link_above_it(hostile: Hostile, path: Path) -> None:
    path.parent.rename(hostile.other.parent / "moved")
    path.parent.symlink_to(hostile.other.parent / "moved")


def the_worktree_of_another_task(hostile: Hostile, path: Path) -> None:
    other = hostile.yard.prepare("t2").path
    (path / ".git").write_text((other / ".git").read_text())


def a_link_for_a_file(hostile: Hostile, path: Path) -> None:
    (path / ".git").rename(path.parent.parent / "kept")
    (path / ".git").symlink_to(path.parent.parent / "kept")


def a_pipe_for_a_file(hostile: Hostile, path: Path) -> None:
    (path / ".git").unlink()
    os.mkfifo(path / ".git")


def much_for_a_file(hostile: Hostile, path: Path) -> None:
    (path / ".git").write_text(f"gitdir: {own(hostile)}\n" + " \n" * 100_000)


def words_for_a_file(hostile: Hostile, path: Path) -> None:
    (path / ".git").write_bytes(b"gitdir: \xff\x00\n")


def objects_of_another_repository(hostile: Hostile, path: Path) -> None:
    git(hostile.other, "branch", "fairlane/t1")
    (own(hostile) / "commondir").write_text(f"{hostile.other}/.git\n")


def a_record_of_another_folder(hostile: Hostile, path: Path) -> None:
    (own(hostile) / "gitdir").write_text(f"{hostile.other}/.git\n")


def a_record_that_is_a_link(hostile: Hostile, path: Path) -> None:
    own(hostile).rename(hostile.other.parent / "record")
    own(hostile).symlink_to(hostile.other.parent / "record")


def the_index_of_another_repository(hostile: Hostile, path: Path) -> None:
    (own(hostile) / "index").unlink()
    (own(hostile) / "index").symlink_to(hostile.other / ".git" / "index")


def a_link_to_itself(hostile: Hostile, path: Path) -> None:
    (path / "loop").symlink_to("loop")
    (path / ".git").write_text(f"gitdir: {path}/loop/t1\n")


def a_common_folder_that_is_a_link_to_itself(hostile: Hostile, path: Path) -> None:
    (path / "loop").symlink_to("loop")
    (own(hostile) / "commondir").write_text(f"{path}/loop\n")


CHANGES = [
    a_repository_with_a_monitor,
    the_git_folder_of_another_repository,
    a_worktree_of_another_repository,
    another_checkout_by_a_link,
    a_link_to_nowhere,
    a_link_above_it,
    the_worktree_of_another_task,
    a_link_for_a_file,
    a_pipe_for_a_file,
    much_for_a_file,
    words_for_a_file,
    objects_of_another_repository,
    a_record_of_another_folder,
    a_record_that_is_a_link,
    the_index_of_another_repository,
    a_link_to_itself,
    a_common_folder_that_is_a_link_to_itself,
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_is_not_its_worktree_is_left_alone(
    hostile: Hostile, change: Callable[[Hostile, Path], None]
) -> None:
    yard = hostile.yard
    path = yard.work(MERGING).path
    safe = yard.leftovers(t1=Status.DONE)["t1"]
    change(hostile, path)
    hostile.before = hostile.look()
    refs = git(yard.repo, "for-each-ref")
    problem = yard.finish(MERGING)
    if change in (a_record_that_is_a_link, the_index_of_another_repository):
        assert f"{own(hostile)}" in problem
        assert "is a link" in problem
        assert "`fairlane retry t1`" in problem
    else:
        assert str(path) in problem
        assert "`fairlane workspaces`" in problem
    row = yard.leftovers(t1=Status.DONE)["t1"]
    assert row.keep.startswith("not safe: ")
    assert row.branch is None
    for refused in (
        lambda: workspaces.clean(yard.home, safe, yard.project),
        lambda: yard.prepare(MERGING),
    ):
        with pytest.raises(FairlaneError):
            refused()
    hostile.assert_harmless()
    assert git(yard.repo, "for-each-ref") == refs
    assert os.path.lexists(path)


@pytest.mark.parametrize("reference", ["worktrees/t1/HEAD", "refs/heads/fairlane/t1"])
def test_work_is_not_committed_on_the_owners_branch(hostile: Hostile, reference: str) -> None:
    yard = hostile.yard
    path = yard.work("t1").path
    (hostile.common / reference).write_text("ref: refs/heads/main\n")
    problem = yard.finish("t1")
    assert f"{path} is on main, not on fairlane/t1" in problem
    assert "`fairlane workspaces`" in problem
    assert yard.log("main") == ["first"]
    assert (path / "t1").exists()
    assert "not safe: it is on main" in yard.leftovers(t1=Status.DONE)["t1"].keep


def test_what_is_left_in_a_pool_is_not_committed_on_the_owners_branch(hostile: Hostile) -> None:
    yard = hostile.yard
    yard.change(workspaces=("w1",))
    path = yard.work("t1", workspace="w1").path
    (hostile.common / "worktrees" / "w1" / "HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(FairlaneError, match="is on main"):
        yard.prepare("t2", "w1")
    assert yard.log("main") == ["first"]
    assert (path / "t1").exists()


@pytest.mark.parametrize("kind", ["clone", "stranger"])
def test_a_merge_goes_into_no_checkout_that_the_agent_made_up(hostile: Hostile, kind: str) -> None:
    """The list of worktrees is in the repository's git folder, where an agent can write."""
    yard = hostile.yard
    yard.work(MERGING)
    git(yard.repo, "checkout", "-q", "-b", "elsewhere")
    record = hostile.common / "worktrees" / "made-up"
    record.mkdir()
    (record / "HEAD").write_text("ref: refs/heads/main\n")
    (record / "commondir").write_text("../..\n")
    (record / "gitdir").write_text(f"{hostile.other}/.git\n")
    if kind == "clone":  # in which the merge would work
        shutil.rmtree(hostile.other)
        git(yard.repo, "clone", "-q", "-b", "main", str(yard.repo), str(hostile.other))
        commit(yard.home / "worktrees" / "web" / "t1", "work")
        git(hostile.other, "fetch", "-q")
    hostile.before = hostile.look()
    assert str(hostile.other) in yard.finish(MERGING)
    hostile.assert_harmless()
    assert yard.log("main") == ["first"]


def test_nothing_is_removed_through_a_link(hostile: Hostile, tmp_path: Path) -> None:
    """Git removes what a record of a worktree that is gone leads to."""
    yard = hostile.yard
    yard.work("t1")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "precious").write_text("x")
    (hostile.common / "worktrees" / "made-up").symlink_to(tmp_path / "docs")
    with pytest.raises(FairlaneError, match="made-up"):
        yard.prepare("t2")
    assert (tmp_path / "docs" / "precious").exists()


@pytest.mark.parametrize("kind", ["refs", "logs/refs"])
def test_no_branch_is_written_through_a_link(hostile: Hostile, kind: str) -> None:
    yard = hostile.yard
    yard.work("main")
    folder = hostile.common / kind / "heads" / "fairlane"
    folder.rename(folder.parent / "kept")
    folder.symlink_to(hostile.other / ".git" / kind / "heads")
    git(yard.repo, "branch", "--list")
    log = (hostile.other / ".git" / "logs" / "refs" / "heads" / "main").read_bytes()
    assert "link" in yard.finish("main")
    hostile.assert_harmless()
    assert (hostile.other / ".git" / "logs" / "refs" / "heads" / "main").read_bytes() == log


@pytest.mark.parametrize("gone", ["folder", "file"])
def test_a_worktree_that_is_gone_is_told_and_made_anew(hostile: Hostile, gone: str) -> None:
    yard = hostile.yard
    path = yard.work("t1").path
    if gone == "folder":
        shutil.rmtree(path)
    else:
        (path / ".git").unlink()
    assert "`fairlane workspaces`" in yard.finish("t1")
    if gone == "folder":
        assert (yard.prepare("t1").path / "README").exists()
    else:
        with pytest.raises(FairlaneError, match="in the way"):
            yard.prepare("t1")
        assert (path / "t1").exists()


def test_relative_paths_lead_to_the_same_worktree(hostile: Hostile) -> None:
    """Git from 2.48 on writes them where `worktree.useRelativePaths` is set."""
    yard = hostile.yard
    path = yard.work(MERGING).path
    (path / ".git").write_text(f"gitdir: {os.path.relpath(own(hostile), path)}\n")
    (own(hostile) / "gitdir").write_text(os.path.relpath(path / ".git", own(hostile)) + "\n")
    assert yard.finish(MERGING) == ""
    assert yard.prepare(MERGING).path == path
    assert yard.leftovers(t1=Status.DONE)["t1"].keep == ""


def test_a_repository_that_is_a_worktree_itself(hostile: Hostile, tmp_path: Path) -> None:
    yard = hostile.yard
    git(yard.repo, "worktree", "add", "-q", "-b", "feature", str(tmp_path / "linked"))
    yard.change(repo=str(tmp_path / "linked"))
    yard.work(MERGING)
    assert yard.finish(MERGING) == ""
    assert yard.log("feature") == ["t1", "first"]
    assert (tmp_path / "linked" / "t1").exists()
    task = Task("t2", base="main", merge="merge")
    yard.work(task)
    assert yard.finish(task) == ""
    assert (yard.repo / "t2").exists()
    assert yard.leftovers(t1=Status.DONE, t2=Status.DONE)["t2"].keep == ""


def test_a_repository_whose_git_folder_is_elsewhere(hostile: Hostile, tmp_path: Path) -> None:
    yard = hostile.yard
    git(yard.repo, "init", "-q", f"--separate-git-dir={tmp_path / 'separate'}")
    yard.work(MERGING)
    assert yard.finish(MERGING) == ""
    assert (yard.repo / "t1").exists()


def test_a_repository_and_a_home_reached_by_links(hostile: Hostile, tmp_path: Path) -> None:
    yard = hostile.yard
    (tmp_path / "to-repo").symlink_to(yard.repo)
    (tmp_path / "to-home").symlink_to(yard.home)
    yard.home = tmp_path / "to-home"
    yard.change(repo=str(tmp_path / "to-repo"))
    yard.work(MERGING)
    assert yard.finish(MERGING) == ""
    assert yard.leftovers(t1=Status.DONE)["t1"].keep == ""
    yard.prepare(MERGING)


def test_two_repositories_do_not_share_records(hostile: Hostile, tmp_path: Path) -> None:
    yard = hostile.yard
    yard.prepare("t1")
    yard.change(name="api", repo=str(make_repository(tmp_path / "api")))
    yard.work("t1")
    assert yard.finish("t1") == ""
    assert git(tmp_path / "api", "log", "--format=%s", "fairlane/t1") == "t1\nfirst"


def test_the_lock_of_a_repository_is_no_way_out(hostile: Hostile, tmp_path: Path) -> None:
    yard = hostile.yard
    yard.work(MERGING)
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (lock,) = (yard.home / "locks").iterdir()
    lock.unlink()
    lock.symlink_to(precious)
    assert "cannot be used" in yard.finish(MERGING)
    lock.unlink()
    os.mkfifo(lock)
    assert "is no regular file" in yard.finish(MERGING)
    assert precious.read_text() == "precious"


def test_a_repository_that_shares_the_folder_of_another_is_refused(hostile: Hostile) -> None:
    yard = hostile.yard
    yard.work(MERGING)
    (hostile.common / "commondir").write_text(f"{hostile.other / '.git'}\n")
    assert "leads into another repository" in yard.finish(MERGING)
    with pytest.raises(FairlaneError, match="leads into another repository"):
        yard.prepare("t2")
    hostile.assert_harmless()
