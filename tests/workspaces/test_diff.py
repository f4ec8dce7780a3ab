"""Diffs of what git keeps and of what lies in a work tree; hostile names and contents, bounds."""

from __future__ import annotations

import shutil

import pytest

from fairlane.model.errors import FairlaneError, NotFound
from fairlane.model.task import Task
from fairlane.workspaces import WorkRecord
from fairlane.workspaces.work import folder, patches
from fairlane.workspaces.work.look import Diff, Wanted, commits, live_diff, recorded_diff
from tests.workspaces.test_work import look_in
from tests.workspaces.yard import Yard, commit, git

pytestmark = pytest.mark.slow

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def recorded(yard: Yard, record: WorkRecord, *files: str, **wanted: bool) -> Diff:
    assert record["start"] is not None
    assert record["head"] is not None
    commits = record["start"], record["base_commit"], record["head"]
    return recorded_diff(yard.home, yard.project, *commits, Wanted(files, **wanted))


def live(yard: Yard, task: str, *files: str, **wanted: bool) -> Diff:
    where = (yard.home, yard.settings, yard.project, Task(task), None, False)
    found = live_diff(*where, Wanted(files, **wanted))
    assert found is not None
    return found


def texts(diff: Diff) -> dict[str, str | None]:
    return {change.path: text for change, text in diff.files}


def test_patches_are_those_of_git(yard: Yard) -> None:
    place = yard.work("t1", "one", "two")
    (place.path / "README").write_text("one\ntwo\n")
    record = yard.keep("t1")
    diff = recorded(yard, record)
    whole = git(yard.repo, "diff", "--abbrev=12", "main", "fairlane/t1")
    assert "".join(text or "" for text in texts(diff).values()).strip() == whole
    assert not diff.truncated
    assert texts(recorded(yard, record, stat=True)) == {"README": None, "t1": None}


def test_files_and_folders_narrow_it(yard: Yard) -> None:
    place = yard.work("t1")
    (place.path / "src" / "more").write_text("x\n")
    (place.path / "srcs").write_text("x\n")
    git(place.path, "mv", "README", "src/README")
    record = yard.keep("t1")
    assert set(texts(recorded(yard, record, "src/"))) == {"src/more", "src/README"}
    assert set(texts(recorded(yard, record, "README", "./t1"))) == {"src/README", "t1"}
    assert texts(recorded(yard, record, "nothing")) == {}
    assert len(texts(recorded(yard, record, "."))) == 4
    text = texts(recorded(yard, record, "README"))["src/README"]
    assert text is not None
    assert "rename from README\n" in text


def test_each_file_has_its_own_patch_whatever_it_is_called(yard: Yard) -> None:
    """Contents and names that look like the head of a patch lead to no other file."""
    place = yard.prepare("t1")
    names = ["a\ndiff --git x", "-p", "b", "c\x1b[2J", "d\u202e", "e", "\udcfe"]
    for number, name in enumerate(names):
        (place.path / name).write_text(f"diff --git {number}\n+++ b/x\n@@ -1 +1 @@\n")
    (place.path / "README").unlink()
    (place.path / "README").symlink_to("src")  # git tells it in two parts
    (place.path / "long").write_text("x" * 200_000 + "\ndiff --git a/z b/z\n")
    (place.path / "image").write_bytes(b"\0" * 10)
    (place.path / "empty").touch()
    (place.path / "src" / "code").chmod(0o755)
    diff = recorded(yard, yard.keep("t1"))
    found = texts(diff)
    for number, name in enumerate(names):
        text = found[name.replace("\udcfe", "\ufffd")]
        assert text is not None
        assert f"\n+diff --git {number}\n" in text
        assert "\ndiff --git " not in text
    readme = found["README"]
    assert readme is not None
    assert readme.count("diff --git ") == 2
    assert "Binary files" in (found["image"] or "")
    assert "new file mode" in (found["empty"] or "")
    assert "new mode 100755" in (found["src/code"] or "")
    assert (found["long"] or "").endswith("+diff --git a/z b/z\n")
    assert not diff.truncated


def test_a_long_patch_is_cut_at_a_line_and_the_rest_goes_on(yard: Yard) -> None:
    place = yard.prepare("t1")
    (place.path / "a").write_text("line of a\n" * 200_000)
    (place.path / "b").write_text("x" * (2 << 20))
    (place.path / "c").write_text("c\n")
    diff = recorded(yard, yard.keep("t1"))
    found = texts(diff)
    a, b, c = (found[name] or "" for name in "abc")
    assert diff.truncated
    assert len(a) <= patches.FILE_BYTES_MAX < len(a) + 20
    assert a.endswith("+line of a\n")
    assert b.endswith("+++ b/b\n@@ -0,0 +1 @@\n")
    assert c.endswith("+c\n")
    assert {change.added for change, _ in diff.files} == {200_000, 1}


def test_all_patches_together_are_bounded(yard: Yard) -> None:
    place = yard.prepare("t1")
    for number in range(12):
        (place.path / f"{number:02}").write_text(f"{number}\n" * 400_000)
    record = yard.keep("t1")
    diff = recorded(yard, record)
    sizes = [len(text or "") for text in texts(diff).values()]
    assert diff.truncated
    assert sum(sizes) <= patches.ALL_BYTES_MAX
    assert texts(diff)["11"] is None
    assert texts(recorded(yard, record, "11"))["11"]


def test_a_file_that_is_too_large_counts_as_binary(yard: Yard) -> None:
    place = yard.prepare("t1")
    (place.path / "huge").write_text("text\n" * (7 << 20))
    ((change, text),) = recorded(yard, yard.keep("t1")).files
    assert change.binary
    assert "Binary files" in (text or "")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_a_running_attempt_shows_what_is_there_and_nothing_changes(yard: Yard, mode: str) -> None:
    yard.workspaces(mode=mode)
    place = yard.work("t1", "one")
    commit(place.path, "half")
    (place.path / "README").write_text("changed\n")
    (place.path / "new").write_text("new\n")
    before = look_in(place.path)
    objects = sorted(path for path in (yard.repo / ".git" / "objects").rglob("*"))
    diff = live(yard, "t1")
    assert set(texts(diff)) == {"t1", "README", "new"}
    assert "+new\n" in (texts(diff)["new"] or "")
    assert look_in(place.path) == before
    assert sorted(path for path in (yard.repo / ".git" / "objects").rglob("*")) == objects
    assert list((yard.home / "git").glob("*/snapshot.*")) == []
    assert git(yard.repo, "for-each-ref", "refs/fairlane") == ""


def test_the_base_shows_what_was_carried(yard: Yard) -> None:
    yard.work("t1")
    yard.keep("t1")
    record = dict(yard.keep("t1"))
    first = record["start"]
    git(yard.repo, "checkout", "-q", "--detach", "fairlane/t1")
    middle = git(yard.repo, "rev-parse", "HEAD")
    (yard.repo / "own").write_text("own\n")
    head = commit(yard.repo, "own")
    own = recorded_diff(yard.home, yard.project, middle, str(first), head, Wanted())
    both = recorded_diff(yard.home, yard.project, middle, str(first), head, Wanted(carried=True))
    assert set(texts(own)) == {"own"}
    assert set(texts(both)) == {"own", "t1"}


def test_commits_that_are_gone_are_named(yard: Yard) -> None:
    record = yard.keep(Task("t1")) if yard.work("t1") else None
    assert record is not None
    with pytest.raises(NotFound, match="does not have 111111111111 any more"):
        recorded(yard, {**record, "head": "1" * 40})


def test_commits_are_told_and_bounded(yard: Yard) -> None:
    place = yard.prepare("t1")
    for number in range(60):
        git(place.path, *AUTHOR, "commit", "-q", "--allow-empty", "-m", f"\x1b[31m{number}")
    record = yard.keep("t1")
    found = commits(yard.home, yard.project, str(record["start"]), str(record["head"]))
    assert len(found) == 50
    assert (found[0].subject, found[0].author) == ("\x1b[31m59", "Ada")
    assert found[0].id == record["head"]


def test_what_runs_by_itself_does_not_hide(yard: Yard) -> None:
    """Behind a link, or among many others."""
    place = yard.work("t1")
    (place.path / "shown").mkdir()
    (place.path / "shown" / "tasks.json").write_text("{}")
    (place.path / ".vscode").symlink_to("shown")
    for number in range(30):
        (place.path / f".a{number}" / ".git").mkdir(parents=True)
    assert folder.runs_by_itself(place.path)[:2] == [".vscode/tasks.json", ".a0/.git"]


def test_a_folder_is_verified_before_anybody_enters(yard: Yard) -> None:
    place = yard.work("t1")
    (place.path / ".envrc").write_text("rm -rf ~\n")
    (place.path / ".vscode").mkdir()
    (place.path / ".vscode" / "tasks.json").write_text("{}")
    (place.path / "inner").mkdir()
    git(place.path / "inner", "init", "-q")
    found = folder.runs_by_itself(place.path)
    assert found == [".envrc", ".vscode/tasks.json", "inner/.git"]
    folder.check(yard.home, yard.project, place.path, place.branch, None)
    (place.path / ".git").unlink()
    (place.path / ".git").write_text("gitdir: /elsewhere/.git\n")
    with pytest.raises(FairlaneError) as caught:
        folder.check(yard.home, yard.project, place.path, place.branch, None)
    assert caught.value.error_code == "unsafe_workspace"


def test_a_folder_that_was_removed_comes_back_by_the_line_that_is_told(yard: Yard) -> None:
    place = yard.work("t1")
    record = yard.keep("t1")
    git(yard.repo, "worktree", "remove", str(place.path))
    with pytest.raises(NotFound, match="was removed; its work is on fairlane/t1") as caught:
        folder.check(yard.home, yard.project, place.path, place.branch, record["head"])
    line = caught.value.hint.split("`")[1]
    words = line.split()
    assert words[:3] == ["git", "-C", str(yard.repo)]
    git(yard.repo, *words[3:])
    folder.check(yard.home, yard.project, place.path, place.branch, record["head"])


def test_a_copy_of_what_git_keeps(yard: Yard) -> None:
    place = yard.work("t1", "mine")
    (place.path / "src" / "out").symlink_to("/etc")
    record = yard.keep("t1")
    shutil.rmtree(place.path)
    git(yard.repo, "worktree", "prune")
    git(yard.repo, "branch", "-D", "fairlane/t1")
    head = str(record["head"])
    path = folder.copy(yard.home, yard.project, "t1", head)
    assert path == yard.home / "open" / "t1"
    assert (path / "t1").read_text() == "mine"
    assert sorted(each.name for each in path.iterdir()) == ["README", "src", "t1"]
    (path / "t1").write_text("changed by a person")
    assert folder.copy(yard.home, yard.project, "t1", head) == path
    assert (path / "t1").read_text() == "changed by a person"
