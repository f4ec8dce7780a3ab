"""What an attempt changed is recorded, and git keeps it whatever becomes of its branch."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fairlane.model.task import Status, Task
from fairlane.workspaces import NotTakenIn, WorkRecord
from fairlane.workspaces.place import repo_of
from fairlane.workspaces.work.changes import Change, changes
from fairlane.workspaces.work.reading import reader_of
from tests.workspaces.yard import Yard, commit, git, look

pytestmark = pytest.mark.slow

MODES = ["worktree", "clone"]


@pytest.fixture(params=MODES)
def each(yard: Yard, request: pytest.FixtureRequest) -> Yard:
    yard.workspaces(mode=request.param)
    return yard


def files(record: WorkRecord) -> dict[str, tuple[str, int, int]]:
    return {row["path"]: (row["change"], row["added"], row["removed"]) for row in record["files"]}


def kept(yard: Yard, task: str, attempt: int = 1) -> str:
    return git(yard.repo, "rev-parse", f"refs/fairlane/keep/{task}/{attempt}")


def between(yard: Yard, record: WorkRecord) -> list[Change]:
    """The changes of a record, read from git now."""
    assert record["start"] is not None
    assert record["head"] is not None
    reader = reader_of(repo_of(yard.home, yard.project))
    return changes(reader, record["start"], record["head"])[0]


def test_a_success_is_recorded_with_its_files(each: Yard) -> None:
    place = each.work("t1", "one", "two")
    (place.path / "README").write_text("one\nmore\n")
    commit(place.path, "by the agent")
    (place.path / "src" / "code").unlink()
    first = git(each.repo, "rev-parse", "main")
    record = each.keep("t1")
    head = git(each.repo, "rev-parse", "fairlane/t1")
    assert files(record) == {"README": ("M", 1, 0), "src/code": ("D", 0, 1), "t1": ("A", 2, 0)}
    assert record["branch"] == "fairlane/t1"
    assert record["path"] == str(place.path)
    assert (record["base"], record["base_commit"]) == ("main", first)
    assert (record["start"], record["head"], record["dirty"]) == (first, head, False)
    assert record["more"] == 0
    assert "problem" not in record
    assert kept(each, "t1") == head


def test_doing_it_twice_changes_nothing(each: Yard) -> None:
    each.work("t1")
    assert each.keep("t1") == each.keep("t1")
    assert len(git(each.repo, "for-each-ref", "refs/fairlane").splitlines()) == 1


@pytest.mark.parametrize("way", ["merge", "squash", "rebase"])
def test_it_is_there_after_a_merge_and_without_branch_and_folder(each: Yard, way: str) -> None:
    place = each.work("t1", "work")
    record = each.keep("t1")
    before = between(each, record)
    commit(each.repo, "meanwhile")
    if way == "merge":
        git(each.repo, "merge", "-q", "--no-edit", "fairlane/t1")
    elif way == "squash":
        git(each.repo, "merge", "-q", "--squash", "fairlane/t1")
        commit(each.repo, "squashed")
    else:
        git(each.repo, "cherry-pick", "fairlane/t1")
    shutil.rmtree(place.path)
    git(each.repo, "worktree", "prune")
    git(each.repo, "branch", "-D", "fairlane/t1")
    git(each.repo, "reflog", "expire", "--expire=now", "--all")
    git(each.repo, "gc", "-q", "--prune=now")
    assert between(each, record) == before == [Change("t1", "A", added=1)]


def test_a_failed_attempt_keeps_what_it_left_and_touches_nothing(each: Yard) -> None:
    place = each.work("t1")
    mine = commit(place.path, "half")
    (place.path / "rest").write_text("not committed\n")
    (place.path / "README").write_text("changed\n")
    (place.path / "staged").write_text("staged\n")
    git(place.path, "add", "staged")
    before, branch = look_in(place.path), git(each.repo, "rev-parse", "fairlane/t1")
    record = each.keep("t1", success=False)
    assert look_in(place.path) == before
    assert git(each.repo, "rev-parse", "fairlane/t1") == branch
    assert record["dirty"]
    assert sorted(files(record)) == ["README", "rest", "staged", "t1"]
    assert kept(each, "t1") == record["head"] != mine
    assert git(each.repo, "rev-parse", f"{record['head']}~1") == mine
    assert each.keep("t1", attempt=2)["dirty"] is False
    assert len({kept(each, "t1"), kept(each, "t1", 2)}) == 2


def look_in(folder: Path) -> dict[str, object]:
    """All that must not change in a work tree, its index included."""
    paths = sorted(path for path in folder.rglob("*") if ".git" not in path.parts)
    return {
        "status": git(folder, "status", "--porcelain=v2", "--untracked-files=all"),
        "head": git(folder, "rev-parse", "HEAD"),
        "staged": git(folder, "ls-files", "--stage"),
        "files": {str(path): path.read_bytes() for path in paths if path.is_file()},
    }


def test_a_failed_attempt_without_a_change_keeps_its_last_commit(each: Yard) -> None:
    each.prepare("t1")
    record = each.keep("t1", success=False)
    assert (record["dirty"], record["files"]) == (False, [])
    assert record["head"] == record["start"] == git(each.repo, "rev-parse", "main")


def test_renames_binaries_modes_links_and_submodules(each: Yard) -> None:
    text = "".join(f"{number}\n" for number in range(100))
    (each.repo / "long").write_text(text)
    (each.repo / "run").write_text("x\n")
    (each.repo / "target").write_text("x\n")
    commit(each.repo, "more")
    place = each.prepare("t1")
    git(place.path, "mv", "long", "longer")
    (place.path / "longer").write_text(text + "101\n")
    (place.path / "image").write_bytes(b"\0\1\2\xff" * 100)
    (place.path / "run").chmod(0o755)
    (place.path / "target").unlink()
    (place.path / "target").symlink_to("README")
    (place.path / "empty").write_text("")
    git(place.path, "add", "-A")
    (place.path / "sub").mkdir()
    link = f"160000,{git(each.repo, 'rev-parse', 'HEAD')},sub"
    git(place.path, "update-index", "--add", "--cacheinfo", link)
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    git(place.path, *author, "commit", "-qm", "all")
    record = each.keep("t1", success=False)
    assert files(record) == {
        "empty": ("A", 0, 0),
        "image": ("A", 0, 0),
        "longer": ("R", 1, 0),
        "run": ("M", 0, 0),
        "sub": ("A", 1, 0),
        "target": ("M", 1, 1),
    }
    assert [row["path"] for row in record["files"] if row["binary"]] == ["image"]
    assert {row.old_path for row in between(each, record)} == {None, "long"}


HOSTILE = [
    "new\nline",
    "-p",
    "--output=x",
    "a\x1b[31mred",
    "b\u202ecod",
    " blank ",
    "tab\tx",
    "\udcff",
]


def test_names_that_agents_choose(each: Yard) -> None:
    place = each.prepare("t1")
    for name in HOSTILE:
        (place.path / name).write_text("x\n")
    record = each.keep("t1")
    names = {name.replace("\udcff", "\ufffd") for name in HOSTILE}
    assert set(files(record)) == names
    assert all(counts == ("A", 1, 0) for counts in files(record).values())


def test_many_files_are_counted_and_the_first_of_them_named(yard: Yard) -> None:
    place = yard.prepare("t1")
    (place.path / "many").mkdir()
    for number in range(10_000):
        (place.path / "many" / f"{number:05}").write_text(f"{number}\n")
    (place.path / "zz" / ".github").mkdir(parents=True)
    (place.path / ".github").mkdir()
    (place.path / ".github" / "ci.yml").write_text("x\n")
    record = yard.keep("t1")
    assert len(record["files"]) == 1000
    assert record["more"] == 9001
    assert record["protected"] == [".github/ci.yml"]


def test_a_huge_file_of_a_failed_attempt_is_not_kept(yard: Yard) -> None:
    place = yard.work("t1")
    with (place.path / "huge").open("wb") as file:
        file.truncate(33 << 20)
    record = yard.keep("t1", success=False)
    assert list(files(record)) == ["t1"]


@pytest.mark.parametrize("words", ["reset --hard HEAD~1", "commit --amend -m other"])
def test_an_agent_that_writes_history_anew(each: Yard, words: str) -> None:
    (each.repo / "second").write_text("x\n")
    commit(each.repo, "second")
    place = each.work("t1")
    commit(place.path, "mine")
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    git(place.path, *author, *words.split())
    record = each.keep("t1")
    assert record["head"] == git(each.repo, "rev-parse", "fairlane/t1")
    assert list(files(record)) == ([] if "reset" in words else ["t1"])


def test_an_agent_that_deletes_its_branch_parks_its_task_and_loses_nothing(each: Yard) -> None:
    place = each.work("t1")
    commit(place.path, "mine")
    git(place.path, "update-ref", "-d", "refs/heads/fairlane/t1")
    with pytest.raises(NotTakenIn) as caught:
        each.keep("t1")
    assert caught.value.work is not None
    if each.settings.workspaces.mode == "worktree":
        assert list(files(caught.value.work)) == ["t1"]
    each.keep("t1", success=False)


def test_an_agent_that_works_elsewhere_parks_its_task_and_its_work_is_kept(each: Yard) -> None:
    place = each.work("t1")
    git(place.path, "checkout", "-q", "-b", "mine")
    commit(place.path, "mine")
    with pytest.raises(NotTakenIn, match="is on mine, not on fairlane/t1") as caught:
        each.keep("t1")
    assert caught.value.work is not None
    assert list(files(caught.value.work)) == ["t1"]


def test_a_folder_that_is_gone_is_a_problem_of_the_record(each: Yard) -> None:
    place = each.work("t1")
    shutil.rmtree(place.path)
    assert "it is not there" in each.keep("t1", success=False).get("problem", "")


def test_a_repository_inside_is_left_out(each: Yard) -> None:
    place = each.work("t1")
    (place.path / "inner").mkdir()
    git(place.path / "inner", "init", "-q")
    commit(place.path / "inner", "inner")
    assert list(files(each.keep("t1", success=False))) == ["t1"]


def test_a_base_without_a_file(yard: Yard) -> None:
    git(yard.repo, "checkout", "-q", "--orphan", "empty")
    git(yard.repo, "rm", "-rfq", ".")
    commit(yard.repo, "nothing")
    yard.work(Task("t1", base="empty"))
    assert list(files(yard.keep(Task("t1", base="empty")))) == ["t1"]


def test_a_pool_records_the_folder_that_was_used(yard: Yard) -> None:
    yard.change(workspaces=("alice", "bob"))
    for task, workspace in (("t1", "bob"), ("t2", "bob")):
        place = yard.work(task, workspace=workspace)
        record = yard.keep(task, workspace)
        assert record["path"] == str(place.path)
        assert list(files(record)) == [task]


def test_nothing_is_recorded_without_a_branch(yard: Yard) -> None:
    from fairlane.workspaces import keep_work

    yard.workspaces(mode="shared")
    arguments = (yard.home, yard.settings, yard.project, Task("t1"), None)
    assert keep_work(*arguments, attempt=1, success=True) is None
    yard.change(repo=None)
    arguments = (yard.home, yard.settings, yard.project, Task("t1"), None)
    assert keep_work(*arguments, attempt=1, success=True) is None


def test_attributes_of_an_agent_hide_nothing(yard: Yard) -> None:
    place = yard.work("t1", "text")
    (place.path / ".gitattributes").write_text("* -diff\n")
    info = yard.repo / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text("* -diff\n")
    record = yard.keep("t1")
    assert files(record)["t1"] == ("A", 1, 0)
    assert not any(row["binary"] for row in record["files"])


def test_a_pipe_in_the_tree_hangs_nothing(yard: Yard) -> None:
    place = yard.work("t1")
    (place.path / "deep").mkdir()
    os.mkfifo(place.path / "deep" / ".gitignore")
    assert "pipe" in yard.keep("t1", success=False).get("problem", "")


def test_the_checkout_of_the_user_stays_as_it_is(each: Yard) -> None:
    before = look(each.repo)
    each.work("t1")
    each.keep("t1")
    each.work("t2")
    each.keep("t2", success=False)
    assert look(each.repo) == before
    assert each.leftovers(t1=Status.DONE)["t1"].keep.endswith("is not merged into main")
