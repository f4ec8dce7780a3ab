"""A retry goes on in its own work tree, and takes in what is new in the tasks that it needs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fairlane.model.errors import Refused
from fairlane.model.task import Task
from fairlane.workspaces import git as ours
from tests.workspaces.carrying import (
    PLAIN,
    Killed,
    done,
    finish,
    head,
    kill_at,
    names,
    own_files,
    prepare,
    start,
)
from tests.workspaces.yard import Yard, commit, git

pytestmark = pytest.mark.slow


def test_a_retry_takes_in_what_is_new(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    place = prepare(any_yard, "t2", one)
    (place.path / "own").write_text("own\n")
    commit(place.path, "own work")
    (place.path / "half").write_text("half\n")
    newer = done(any_yard, "t1", more="more\n")
    place = prepare(any_yard, "t2", newer)
    assert names(place) == {*PLAIN, "t1", "own", "half", "more"}
    assert git(place.path, "status", "--porcelain") == ""
    assert start(any_yard, "t2").carried == (newer,)
    done(any_yard, "t2", newer)
    assert sorted(own_files(any_yard, "t2")) == ["half", "own", "t2"]
    log = any_yard.log("fairlane/t2")
    assert log[:2] == ["t2", "Take in t1"]
    assert "own work" in log
    assert any(line.startswith("Left over by an earlier") for line in log)


def test_a_retry_without_news_leaves_everything_alone(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    place = prepare(any_yard, "t2", one)
    (place.path / "half").write_text("half\n")
    before, known = head(any_yard, "t2"), start(any_yard, "t2")
    place = prepare(any_yard, "t2", one)
    assert (head(any_yard, "t2"), start(any_yard, "t2")) == (before, known)
    if not any_yard.project.workspaces:
        assert git(place.path, "status", "--porcelain") == "?? half"


def test_a_branch_without_own_work_goes_on_at_the_new_work(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    prepare(any_yard, "t2", one)
    newer = done(any_yard, "t1", more="more\n")
    prepare(any_yard, "t2", newer)
    assert head(any_yard, "t2") == newer[1] == start(any_yard, "t2").commit


def test_new_work_that_conflicts_changes_nothing(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    place = prepare(any_yard, "t2", one)
    (place.path / "README").write_text("t2\n")
    kept = commit(place.path, "own work")
    newer = done(any_yard, "t1", README="t1\n")
    with pytest.raises(Refused) as error:
        prepare(any_yard, "t2", newer)
    assert error.value.error_code == "carry_conflict"
    assert error.value.message == "the work of t2 and t1 conflicts: README"
    assert (place.path / "README").read_text() == "t2\n"
    assert head(any_yard, "t2") == kept
    assert start(any_yard, "t2").carried == (one,)
    assert f"git -C {place.path} merge {newer[1][:12]}" in error.value.hint


def test_a_conflict_merged_by_hand_lets_it_go_on(yard: Yard) -> None:
    one = done(yard, "t1")
    place = prepare(yard, "t2", one)
    (place.path / "README").write_text("t2\n")
    commit(place.path, "own work")
    newer = done(yard, "t1", README="t1\n")
    git(place.path, "merge", "-q", "-X", "ours", "--no-edit", newer[1])
    by_hand = head(yard, "t2")
    prepare(yard, "t2", newer)
    assert head(yard, "t2") == by_hand


def test_new_work_of_two_that_conflicts_is_merged_by_hand(yard: Yard) -> None:
    old = [done(yard, name) for name in ("t1", "t2")]
    done(yard, "t3", *old)
    new = [done(yard, name, README=f"{name}!\n") for name in ("t1", "t2")]
    for way in ((), ("-X", "ours")):
        with pytest.raises(Refused) as error:
            prepare(yard, "t3", *new)
        merge = re.search(r"`git -C (\S+) (merge) (\w+)`", error.value.hint)
        assert merge is not None
        git(Path(merge[1]), merge[2], "-q", "--no-edit", *way, merge[3])
    assert names(prepare(yard, "t3", *new)) == {*PLAIN, "t1", "t2", "t3"}
    assert (yard.home / "worktrees/web/t3/README").read_text() == "t2!\n"


def test_uncommitted_work_that_conflicts_is_kept(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    place = prepare(any_yard, "t2", one)
    (place.path / "README").write_text("half\n")
    newer = done(any_yard, "t1", README="t1\n")
    with pytest.raises(Refused, match="the work of t2 and t1 conflicts: README"):
        prepare(any_yard, "t2", newer)
    assert (place.path / "README").read_text() == "half\n"


def test_ignored_files_in_the_way_are_not_overwritten(yard: Yard) -> None:
    one = done(yard, "t1", **{".gitignore": "*.log\n"})
    place = prepare(yard, "t2", one)
    (place.path / "x.log").write_text("mine\n")
    elsewhere = prepare(yard, "t1")
    (elsewhere.path / "x.log").write_text("theirs\n")
    git(elsewhere.path, "add", "-f", "x.log")
    newer = ("t1", commit(elsewhere.path, "a log"))
    with pytest.raises(ours.GitError, match="Aborting"):
        prepare(yard, "t2", newer)
    assert (place.path / "x.log").read_text() == "mine\n"
    assert start(yard, "t2").carried == (one,)
    (place.path / "x.log").unlink()
    place = prepare(yard, "t2", newer)
    assert (place.path / "x.log").read_text() == "theirs\n"


def test_a_need_that_was_written_anew_stays_known_in_both_versions(yard: Yard) -> None:
    one = done(yard, "t1", secret="x\n")
    prepare(yard, "t2", one)
    done(yard, "t2", one)
    place = prepare(yard, "t1")
    git(place.path, "reset", "-q", "--hard", "main")
    (place.path / "other").write_text("y\n")
    newer = ("t1", commit(place.path, "anew"))
    prepare(yard, "t2", newer)
    assert start(yard, "t2").carried == (one, newer)


def test_own_work_counts_from_the_new_head_where_the_starts_conflict(yard: Yard) -> None:
    one = done(yard, "t1", README="first\n")
    place = prepare(yard, "t2", one)
    (place.path / "README").write_text("second\n")
    commit(place.path, "as t1 will do too")
    elsewhere = prepare(yard, "t1")
    git(elsewhere.path, "reset", "-q", "--hard", "main")
    (elsewhere.path / "README").write_text("second\n")
    (elsewhere.path / "more").write_text("more\n")
    newer = ("t1", commit(elsewhere.path, "anew"))
    prepare(yard, "t2", newer)
    assert start(yard, "t2").commit == newer[1]
    assert own_files(yard, "t2") == []


def test_a_need_that_has_landed_since_is_taken_in(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    place = prepare(any_yard, "t2", one)
    (place.path / "own").write_text("own\n")
    commit(place.path, "own work")
    newer = done(any_yard, "t1", more="more\n")
    git(any_yard.repo, "merge", "-q", "--squash", newer[1])
    commit(any_yard.repo, "squashed")
    place = prepare(any_yard, "t2", newer)
    assert "more" in names(place)
    assert finish(any_yard, Task("t2", merge="merge")) == ""
    assert set(any_yard.files("main")) == {"README", "src/code", "t1", "more", "own"}


def test_what_an_older_branch_started_from_is_where_it_left_its_base(yard: Yard) -> None:
    one, place = done(yard, "t1"), prepare(yard, "t2")
    (place.path / "own").write_text("own\n")
    commit(place.path, "own work")
    shutil.rmtree(next((yard.home / "git").glob("*/starts")))
    prepare(yard, "t2", one)
    assert own_files(yard, "t2") == ["own"]


STEPS = {
    "before it is recorded": ("_record", 1),
    "before the branch moves": ("_move", 1),
    "before it is recorded as done": ("_record", 2),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_while_work_is_taken_in(
    any_yard: Yard, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = done(any_yard, "t1")
    place = prepare(any_yard, "t2", one)
    (place.path / "own").write_text("own\n")
    commit(place.path, "own work")
    newer = done(any_yard, "t1", more="more\n")
    kill_at(monkeypatch, *STEPS[step])
    with pytest.raises(Killed):
        prepare(any_yard, "t2", newer)
    monkeypatch.undo()
    taken_in(any_yard, newer)


def test_a_kill_while_git_moves_the_branch(any_yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    one = done(any_yard, "t1")
    place = prepare(any_yard, "t2", one)
    (place.path / "own").write_text("own\n")
    commit(place.path, "own work")
    newer = done(any_yard, "t1", more="more\n")
    real = ours.run

    def half_done(at: ours.Checkout, *words: str, **more: object) -> str:
        if words[0] == "merge":
            (at.path / "more").write_text("mo")  # a file that git had begun to write
            (at.own / "index.lock").touch()
            raise Killed
        return real(at, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ours, "run", half_done)
    with pytest.raises(Killed):
        prepare(any_yard, "t2", newer)
    monkeypatch.undo()
    taken_in(any_yard, newer)


def taken_in(yard: Yard, newer: tuple[str, str]) -> None:
    place = prepare(yard, "t2", newer)
    assert names(place) == {*PLAIN, "t1", "own", "more"}
    assert (place.path / "more").read_text() == "more\n"
    done(yard, "t2", newer)
    assert sorted(own_files(yard, "t2")) == ["own", "t2"]
    assert git(place.path, "status", "--porcelain") == ""
