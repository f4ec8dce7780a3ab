"""One worktree a task, on its own branch; the repository's checkout is never touched."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairlane.model.errors import FairlaneError, Refused
from fairlane.model.project import Project
from fairlane.model.task import Task
from tests.workspaces.yard import Yard, commit, git, look, make_repository

pytestmark = pytest.mark.slow


def test_a_task_gets_a_worktree_on_its_branch_from_the_checked_out_one(yard: Yard) -> None:
    before = look(yard.repo)
    place = yard.prepare("t1")
    assert place.path == yard.home / "worktrees" / "web" / "t1"
    assert (place.branch, place.base) == ("fairlane/t1", "main")
    assert git(place.path, "rev-parse", "--abbrev-ref", "HEAD") == "fairlane/t1"
    assert (place.path / "src" / "code").read_text() == "code\n"
    assert look(yard.repo) == before


def test_what_is_not_committed_in_the_checkout_stays_there_alone(yard: Yard) -> None:
    (yard.repo / "README").write_text("half done\n")
    (yard.repo / "new").write_text("not added\n")
    before = look(yard.repo)
    place = yard.work("t1")
    assert yard.finish("t1") == ""
    assert (place.path / "README").read_text() == "one\n"
    assert not (place.path / "new").exists()
    assert look(yard.repo) == before


@pytest.mark.parametrize("whose", ["task", "project"])
def test_it_starts_from_the_base_that_is_named(yard: Yard, whose: str) -> None:
    git(yard.repo, "checkout", "-q", "-b", "release")
    (yard.repo / "released").write_text("")
    commit(yard.repo, "release")
    git(yard.repo, "checkout", "-q", "main")
    task = Task("t1", base="release") if whose == "task" else Task("t1")
    if whose == "project":
        yard.change(base="release")
    assert (yard.prepare(task).path / "released").exists()
    assert not (yard.prepare(Task("t2", base="main")).path / "released").exists()


def test_a_base_that_is_not_there_is_told(yard: Yard) -> None:
    with pytest.raises(Refused, match="has no nowhere"):
        yard.prepare(Task("t1", base="nowhere"))
    with pytest.raises(Refused, match="has no --upload-pack=x"):
        yard.prepare(Task("t1", base="--upload-pack=x"))


def test_the_folder_of_worktrees_can_be_chosen(yard: Yard, tmp_path: Path) -> None:
    yard.workspaces(folder=str(tmp_path / "elsewhere"))
    assert yard.prepare("t1").path == tmp_path / "elsewhere" / "web" / "t1"


def test_a_retry_finds_what_the_first_attempt_left(yard: Yard) -> None:
    place = yard.work("t1", "half")
    kept = commit(place.path, "a first half")
    (place.path / "more").write_text("not committed\n")
    assert yard.prepare("t1") == place
    assert (place.path / "more").exists()
    assert git(place.path, "rev-parse", "HEAD") == kept


def test_a_retry_goes_back_to_its_branch(yard: Yard) -> None:
    place = yard.prepare("t1")
    git(place.path, "checkout", "-q", "-b", "my-idea")
    assert yard.prepare("t1") == place
    assert git(place.path, "rev-parse", "--abbrev-ref", "HEAD") == "fairlane/t1"
    assert "my-idea" in yard.branches()


def test_a_branch_that_exists_is_gone_on_with(yard: Yard) -> None:
    git(yard.repo, "checkout", "-q", "-b", "fairlane/t1")
    (yard.repo / "earlier").write_text("")
    commit(yard.repo, "earlier")
    git(yard.repo, "checkout", "-q", "main")
    assert (yard.prepare("t1").path / "earlier").exists()


def test_a_branch_that_a_person_has_checked_out_is_not_taken_away(yard: Yard) -> None:
    git(yard.repo, "checkout", "-q", "-b", "fairlane/t1")
    before = look(yard.repo)
    with pytest.raises(Refused, match="fairlane/t1"):
        yard.prepare("t1")
    assert look(yard.repo) == before


def test_a_worktree_whose_folder_was_deleted_is_made_again(yard: Yard) -> None:
    place = yard.work("t1")
    assert yard.finish("t1") == ""
    shutil.rmtree(place.path)
    assert (yard.prepare("t1").path / "t1").exists()


def test_a_crash_in_the_middle_of_making_it_is_made_good(yard: Yard) -> None:
    """Git was killed after it made the branch and before it wrote the files."""
    place = yard.prepare("t1")
    for path in (place.path / "README", place.path / "src" / "code"):
        path.unlink()
    own = yard.repo / ".git" / "worktrees" / "t1"
    (own / "locked").write_text("initializing\n")
    (own / "index").unlink()
    again = yard.work("t1")
    assert (again.path / "README").read_text() == "one\n"
    assert yard.finish("t1") == ""
    assert yard.files("fairlane/t1") == ["README", "src/code", "t1"]


def test_a_crash_after_it_was_made_costs_nothing(yard: Yard) -> None:
    """The worktree is there; that it was ever asked for is known to nobody."""
    folder = yard.home / "worktrees" / "web" / "t1"
    git(yard.repo, "worktree", "add", "-q", "-b", "fairlane/t1", str(folder))
    assert yard.prepare("t1").path == folder


def test_a_lock_that_a_killed_git_left_is_taken_away(yard: Yard) -> None:
    place = yard.prepare("t1")
    lock = yard.repo / ".git" / "worktrees" / "t1" / "index.lock"
    lock.write_text("")
    yard.prepare("t1")
    assert not lock.exists()
    commit(place.path, "it goes on")


def test_a_stale_folder_in_the_way_is_refused_and_kept(yard: Yard) -> None:
    folder = yard.home / "worktrees" / "web" / "t1"
    folder.mkdir(parents=True)
    assert yard.prepare("t1").path == folder  # nothing was in it
    other = folder.parent / "t2"
    other.mkdir()
    (other / "precious").write_text("x")
    with pytest.raises(Refused, match="in the way"):
        yard.prepare("t2")
    assert (other / "precious").exists()
    (folder.parent / "t3").write_text("a file")
    with pytest.raises(Refused, match="in the way"):
        yard.prepare("t3")


def test_a_worktree_of_another_repository_is_refused(yard: Yard, tmp_path: Path) -> None:
    make_repository(yard.home / "worktrees" / "web" / "t1")
    git(yard.home / "worktrees" / "web" / "t1", "checkout", "-q", "-b", "fairlane/t1")
    with pytest.raises(Refused, match="no worktree of"):
        yard.prepare("t1")
    place = yard.prepare("t2")
    yard.change(repo=str(make_repository(tmp_path / "moved")))
    with pytest.raises(Refused, match="no worktree of"):
        yard.prepare("t2")
    assert place.path.exists()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, "is not there"),
        (lambda folder: folder.mkdir(), "is not a git repository"),
        (lambda folder: folder.write_text("a file"), "is not there"),
        (lambda folder: (folder.mkdir(), git(folder, "init", "-q")), "has no commit yet"),
    ],
    ids=["missing", "folder", "file", "empty"],
)
def test_what_is_no_repository_is_refused(yard: Yard, tmp_path: Path, make, words: str) -> None:
    folder = tmp_path / "other"
    make(folder)
    yard.change(repo=str(folder))
    with pytest.raises(Refused, match=words) as told:
        yard.prepare("t1")
    assert told.value.hint
    assert not (yard.home / "worktrees").exists()


def test_a_folder_inside_a_repository_is_never_taken_for_it(yard: Yard) -> None:
    before = look(yard.repo)
    yard.change(repo=str(yard.repo / "src"))
    with pytest.raises(Refused, match=f"it lies inside {yard.repo}"):
        yard.prepare("t1")
    assert look(yard.repo) == before
    assert yard.branches() == ["main"]


def test_a_home_inside_the_repository_works_in_worktrees_all_the_same(yard: Yard) -> None:
    yard.home = yard.repo / ".fairlane"
    yard.home.mkdir()
    (yard.repo / ".gitignore").write_text(".fairlane\n")
    commit(yard.repo, "ignore")
    before = git(yard.repo, "rev-parse", "HEAD")
    place = yard.work("t1")
    assert yard.finish("t1") == ""
    assert place.path.is_relative_to(yard.repo)
    assert yard.log("fairlane/t1")[0] == "t1"
    assert git(yard.repo, "rev-parse", "HEAD") == before


def test_without_a_repository_a_task_has_a_folder_of_its_own(yard: Yard) -> None:
    yard.project = Project("web")
    place = yard.prepare("t1")
    assert (place.path, place.repo, place.branch) == (yard.home / "work" / "t1", None, None)
    assert place.path.is_dir()
    assert yard.finish("t1") == ""


@pytest.mark.parametrize("name", ["a.b-c_d", "0", "UPPER.lower", "x" * 128, "HEAD", "main", "a--b"])
def test_odd_names_become_folders_and_branches(yard: Yard, name: str) -> None:
    before = look(yard.repo)
    place = yard.work(name)
    assert yard.finish(name) == ""
    assert place.path.name == name
    assert name in yard.files(f"refs/heads/fairlane/{name}")
    assert look(yard.repo) == before


def test_eight_at_once_get_eight_folders(yard: Yard) -> None:
    before = look(yard.repo)
    names = [f"t{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        places = list(threads.map(yard.work, names))
        problems = list(threads.map(yard.finish, names))
    assert len({place.path for place in places}) == 8
    assert problems == [""] * 8
    for name in names:
        assert yard.files(f"fairlane/{name}") == ["README", "src/code", name]
    assert look(yard.repo) == before


def test_variables_of_git_lead_nowhere_else(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    yard.work("t1")
    assert yard.finish("t1") == ""
    assert yard.log("fairlane/t1") == ["t1", "first"]
    assert git(other, "branch", "--format=%(refname:short)") == "main"


def test_an_error_of_git_is_told_without_advice(yard: Yard, tmp_path: Path) -> None:
    git(yard.repo, "worktree", "add", "-q", "-b", "fairlane/t1", str(tmp_path / "taken"))
    with pytest.raises(Refused, match=r"^git worktree add in [^:]*: fatal: 'fairlane/t1' is "):
        yard.prepare("t1")


def test_what_a_hook_prints_is_told_whole(yard: Yard) -> None:
    hook = yard.repo / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    script = "echo npm is missing\nprintf '\\033[31mInstall it\\n'\necho done\nexit 1\n"
    hook.write_text(f"#!/bin/sh\nexec >&2\n{script}")
    hook.chmod(0o755)
    yard.change(hooks="repo")
    with pytest.raises(FairlaneError) as caught:
        yard.prepare("t1")
    assert caught.value.message.endswith("npm is missing | \\x1b[31mInstall it | done")
    hook.write_text("#!/bin/sh\nseq 100000 >&2\nexit 1\n")
    with pytest.raises(FairlaneError) as caught:
        yard.prepare("t2")
    assert caught.value.message.endswith("| 99999 | 100000")
    assert ": … " in caught.value.message
    assert len(caught.value.message) < 2500
