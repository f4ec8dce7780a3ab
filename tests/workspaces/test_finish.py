"""After a success: the rest is committed, and the branch is kept, merged or offered."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fairlane.model.task import Task
from tests.workspaces.yard import Yard, commit, git, look, make_repository

pytestmark = pytest.mark.slow

WHO = "%an <%ae>, %cn"


def merging(name: str, **more: str) -> Task:
    return Task(name, merge="merge", **more)  # type: ignore[arg-type]


def test_the_rest_is_committed_on_the_branch(yard: Yard) -> None:
    task = Task("t1", title="Say hello", prompt="Say hello to everybody")
    place = yard.work(task)
    (place.path / "README").unlink()
    (place.path / ".gitignore").write_text("*.log\n")
    (place.path / "x.log").write_text("ignored")
    assert yard.finish(task) == ""
    assert yard.files("fairlane/t1") == [".gitignore", "src/code", "t1"]
    assert git(yard.repo, "log", "-1", "--format=%B", "fairlane/t1") == "Say hello\n\nTask: t1"
    assert git(place.path, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("task", "subject"),
    [
        (Task("t1", prompt="\nFirst line\nsecond"), "First line"),
        (Task("t1"), "t1"),
        (Task("t1", title="x" * 100), "x" * 72),
        (Task("t1", title="-m --amend"), "-m --amend"),
        (Task("t1", title="# not a comment"), "# not a comment"),
    ],
)
def test_the_first_line_says_what_the_task_was(yard: Yard, task: Task, subject: str) -> None:
    yard.work(task)
    assert yard.finish(task) == ""
    assert yard.log("fairlane/t1") == [subject, "first"]


def test_what_the_agent_committed_is_left_as_it_is(yard: Yard) -> None:
    place = yard.work("t1")
    kept = commit(place.path, "the agent's own words")
    assert yard.finish("t1") == ""
    assert git(yard.repo, "rev-parse", "fairlane/t1") == kept


def test_nothing_is_committed_where_nobody_wants_it(yard: Yard) -> None:
    yard.workspaces(commit="none")
    place = yard.work("t1")
    assert yard.finish("t1") == ""
    assert yard.log("fairlane/t1") == ["first"]
    assert (place.path / "t1").exists()


def test_new_files_count_whatever_git_is_told_to_show(yard: Yard) -> None:
    git(yard.repo, "config", "status.showUntrackedFiles", "no")
    yard.work("t1")
    assert yard.finish("t1") == ""
    assert "t1" in yard.files("fairlane/t1")


def test_commits_are_by_whoever_the_repository_names(yard: Yard, tmp_path: Path) -> None:
    yard.work("t1")
    yard.finish("t1")
    assert yard.log("fairlane/t1", WHO)[0] == "Ada <ada@example.org>, Ada"
    yard.repo = make_repository(tmp_path / "nobody's", somebody=False)
    yard.change(name="other", repo=str(yard.repo))
    yard.work(merging("t2"))
    commit(yard.repo, "meanwhile")
    assert yard.finish(merging("t2")) == ""
    assert yard.log("main", WHO)[0] == "Fairlane <fairlane@localhost>, Fairlane"
    assert yard.log("fairlane/t2", WHO)[0] == "Fairlane <fairlane@localhost>, Fairlane"


def test_hooks_and_signatures_do_not_stand_in_the_way(yard: Yard) -> None:
    hook = yard.repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    git(yard.repo, "config", "commit.gpgsign", "true")
    git(yard.repo, "config", "gpg.program", "/bin/false")
    yard.work(merging("t1"))
    assert yard.finish(merging("t1")) == ""
    assert "t1" in yard.files("main")


def test_a_merge_into_a_branch_that_nobody_has_checked_out(yard: Yard) -> None:
    git(yard.repo, "branch", "release")
    before = look(yard.repo)
    task = merging("t1", base="release")
    yard.work(task)
    assert yard.finish(task) == ""
    assert yard.log("release") == ["t1", "first"]
    assert yard.log("main") == ["first"]
    assert look(yard.repo) == before


def test_a_merge_takes_a_clean_checkout_along(yard: Yard) -> None:
    yard.work(merging("t1"))
    assert yard.finish(merging("t1")) == ""
    assert git(yard.repo, "status", "--porcelain") == ""
    assert (yard.repo / "t1").exists()
    assert git(yard.repo, "rev-parse", "HEAD") == git(yard.repo, "rev-parse", "fairlane/t1")


def test_two_merges_one_after_the_other(yard: Yard) -> None:
    for name in ("t1", "t2"):
        yard.work(merging(name))
    for name in ("t1", "t2"):
        assert yard.finish(merging(name)) == ""
    assert yard.files("main") == ["README", "src/code", "t1", "t2"]
    assert yard.log("main")[0] == "Merge fairlane/t2"
    assert git(yard.repo, "status", "--porcelain") == ""
    tip = git(yard.repo, "rev-parse", "main")
    assert yard.finish(merging("t2")) == ""  # nothing is left to merge
    assert git(yard.repo, "rev-parse", "main") == tip


def test_a_checkout_with_changes_keeps_them_and_the_branch(yard: Yard) -> None:
    yard.work(merging("t1"))
    (yard.repo / "README").write_text("half done\n")
    before = look(yard.repo)
    assert "changes that are not committed" in yard.finish(merging("t1"))
    assert look(yard.repo) == before
    assert yard.log("fairlane/t1") == ["t1", "first"]
    git(yard.repo, "checkout", "-q", "README")
    assert yard.finish(merging("t1")) == ""
    assert yard.log("main") == ["t1", "first"]


def test_a_conflict_keeps_both_sides(yard: Yard) -> None:
    place = yard.prepare(merging("t1"))
    (place.path / "README").write_text("theirs\n")
    (yard.repo / "README").write_text("ours\n")
    commit(yard.repo, "ours")
    before = look(yard.repo)
    assert yard.finish(merging("t1")) == "merge conflict with main: README"
    assert look(yard.repo) == before
    assert git(yard.repo, "show", "fairlane/t1:README") == "theirs"


def test_it_is_merged_into_the_branch_from_which_it_started(yard: Yard) -> None:
    """Whatever a person checks out meanwhile."""
    yard.work(merging("t1"))
    git(yard.repo, "checkout", "-q", "-b", "elsewhere")
    before = look(yard.repo)
    assert yard.finish(merging("t1")) == ""
    assert look(yard.repo) == before
    assert yard.log("main") == ["t1", "first"]


def test_work_on_another_branch_is_not_called_merged(yard: Yard) -> None:
    place = yard.prepare(merging("t1"))
    git(place.path, "checkout", "-q", "-b", "my-idea")
    (place.path / "t1").write_text("")
    assert "is on my-idea, not on fairlane/t1" in yard.finish(merging("t1"))
    assert yard.log("my-idea") == ["first"]  # whose branch it is, Fairlane does not know
    assert (place.path / "t1").exists()


def test_a_base_that_is_no_branch_cannot_be_merged_into(yard: Yard) -> None:
    git(yard.repo, "tag", "v1")
    task = merging("t1", base="v1")
    yard.work(task)
    assert yard.finish(task) == "there is no branch v1 to merge into"
    assert yard.log("fairlane/t1") == ["t1", "first"]


def test_a_deleted_worktree_of_somebody_else_does_not_matter(yard: Yard, tmp_path: Path) -> None:
    git(yard.repo, "worktree", "add", "-q", "-b", "other", str(tmp_path / "gone"))
    shutil.rmtree(tmp_path / "gone")
    yard.work(merging("t1"))
    assert yard.finish(merging("t1")) == ""
    assert yard.log("main") == ["t1", "first"]


def test_a_repository_that_is_gone_at_the_end_is_told(yard: Yard) -> None:
    yard.work("t1")
    yard.repo.rename(yard.repo.parent / "moved")
    assert "is not there" in yard.finish("t1")
