"""A task starts from the work of the tasks that it needs; that work lands by those tasks alone."""

from __future__ import annotations

import shutil

import pytest

from fairlane import workspaces
from fairlane.model.errors import Refused
from fairlane.model.task import Task
from fairlane.workspaces import carry
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
from tests.workspaces.yard import Yard, commit, git, look

pytestmark = pytest.mark.slow


def test_without_carried_work_it_starts_from_the_base(any_yard: Yard) -> None:
    place = prepare(any_yard, "t1")
    assert names(place) == PLAIN
    assert start(any_yard, "t1") == carry.Start(git(any_yard.repo, "rev-parse", "main"))


def test_one_need_is_started_from_as_it_is(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    before = look(any_yard.repo)
    place = prepare(any_yard, "t2", one)
    assert names(place) == {*PLAIN, "t1"}
    assert start(any_yard, "t2") == carry.Start(one[1], (one,), (one,))
    two = done(any_yard, "t2", one)
    assert own_files(any_yard, "t2") == ["t2"]
    assert names(prepare(any_yard, "t3", two)) == {*PLAIN, "t1", "t2"}
    assert look(any_yard.repo) == before


def test_several_are_merged_in_order(any_yard: Yard) -> None:
    needs = [done(any_yard, name) for name in ("parent", "a", "b")]
    place = prepare(any_yard, "t", *needs)
    assert names(place) == {*PLAIN, "parent", "a", "b"}
    assert start(any_yard, "t").carried == tuple(needs)
    merged = start(any_yard, "t").commit
    assert head(any_yard, "t") == merged
    assert git(any_yard.repo, "log", "-1", "--format=%s %an", merged) == (
        "Start of t: parent, a, b Ada"
    )
    done(any_yard, "t", *needs)
    assert own_files(any_yard, "t") == ["t"]


def test_a_diamond_needs_one_merge(any_yard: Yard) -> None:
    top = done(any_yard, "top")
    left, right = done(any_yard, "left", top), done(any_yard, "right", top)
    prepare(any_yard, "t", top, left, right)
    merged = start(any_yard, "t").commit
    assert git(any_yard.repo, "rev-parse", f"{merged}^1", f"{merged}^2").split() == [
        left[1], right[1],
    ]  # fmt: skip
    assert git(any_yard.repo, "log", "-1", "--format=%s", merged) == "Start of t: top, left, right"


def test_what_contains_the_others_is_started_from_as_it_is(any_yard: Yard) -> None:
    top = done(any_yard, "top")
    left = done(any_yard, "left", top)
    for number, needs in enumerate([(top, left), (left, top)]):
        prepare(any_yard, f"t{number}", *needs)
        assert start(any_yard, f"t{number}").commit == left[1]


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_what_the_base_has_by_now_is_not_carried(any_yard: Yard, how: str) -> None:
    one, two = done(any_yard, "t1"), done(any_yard, "t2")
    (any_yard.repo / "meanwhile").write_text("x\n")
    commit(any_yard.repo, "meanwhile")
    if how == "rebase":
        git(any_yard.repo, "cherry-pick", one[1])
    else:
        git(
            any_yard.repo,
            "merge",
            "-q",
            *(["--squash"] if how == "squash" else ["--no-edit"]),
            one[1],
        )
        commit(any_yard.repo, "t1, squashed")
    base = git(any_yard.repo, "rev-parse", "main")
    prepare(any_yard, "t3", one)
    assert start(any_yard, "t3") == carry.Start(base, (), (one,))
    for name, needs in (("t4", (one, two)), ("t5", (two, one))):
        assert names(prepare(any_yard, name, *needs)) == {*PLAIN, "meanwhile", "t1", "t2"}
        assert start(any_yard, name).carried == (two,)
    done(any_yard, "t5", two, one)
    assert own_files(any_yard, "t5") == ["t5"]


@pytest.mark.parametrize("how", ["squash", "rebase", "other"])
def test_work_that_landed_may_be_changed_in_the_base_since(any_yard: Yard, how: str) -> None:
    place = prepare(any_yard, "t1")
    for text in ("1!\n", "2!\n"):
        (place.path / "README").write_text(text)
        commit(place.path, text)
    finish(any_yard, "t1")
    one = carry.Carried("t1", head(any_yard, "t1"))
    if how == "rebase":
        git(any_yard.repo, "commit", "-q", "--allow-empty", "-m", "meanwhile")
        git(any_yard.repo, "cherry-pick", f"{one.head}~1", one.head)
    elif how == "squash":
        git(any_yard.repo, "merge", "-q", "--squash", one.head)
        commit(any_yard.repo, "t1, squashed")
    (any_yard.repo / "README").write_text("changed since\n")
    base = commit(any_yard.repo, "changed since")
    prepare(any_yard, "t2", one)
    landed = carry.Start(base, (), (one,)), carry.Start(one.head, (one,), (one,))
    assert start(any_yard, "t2") == landed[how == "other"]


def test_work_that_landed_and_work_that_did_not_may_conflict(any_yard: Yard) -> None:
    one, two = done(any_yard, "t1", README="one!\n"), done(any_yard, "t2", README="two!\n")
    git(any_yard.repo, "merge", "-q", "--squash", one[1])
    commit(any_yard.repo, "t1, squashed")
    for needs in ((one, two), (two, one)):
        with pytest.raises(Refused) as error:
            prepare(any_yard, "t3", *needs)
        assert error.value.message == (
            f"the work of {needs[0].task} and {needs[1].task} conflicts: README"
        )


def test_branch_and_worktree_of_a_need_may_be_gone(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    if not any_yard.project.workspaces:
        shutil.rmtree(any_yard.home / "worktrees" / "web" / "t1")
        git(any_yard.repo, "worktree", "prune")
    else:
        prepare(any_yard, "other")
    git(any_yard.repo, "branch", "-q", "-D", "fairlane/t1")
    assert names(prepare(any_yard, "t2", one)) == {*PLAIN, "t1"}


def test_work_without_a_record_is_on_its_branch(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    needs = ("t1", "fairlane/t1"), ("never", "fairlane/never")
    assert names(prepare(any_yard, "t2", *needs)) == {*PLAIN, "t1"}
    assert start(any_yard, "t2") == carry.Start(one.head, (one,), (one,))
    prepare(any_yard, "t2", *needs)
    assert head(any_yard, "t2") == one.head


def test_a_conflict_names_both_tasks_and_makes_nothing(any_yard: Yard) -> None:
    calm = done(any_yard, "calm")
    one, two = done(any_yard, "t1", README="one!\n"), done(any_yard, "t2", README="two!\n")
    with pytest.raises(Refused) as error:
        prepare(any_yard, "t3", calm, one, two)
    assert error.value.error_code == "carry_conflict"
    assert error.value.message == "the work of t1 and t2 conflicts: README"
    assert "`fairlane retry t3`" in error.value.hint
    assert "fairlane/t3" not in any_yard.branches()
    git(any_yard.repo, "merge", "-q", "--no-edit", "fairlane/t1")
    git(any_yard.repo, "merge", "-q", "--no-edit", "-X", "theirs", "fairlane/t2")
    place = prepare(any_yard, "t3", calm, one, two)  # as the hint says: the base has both now
    assert names(place) == {*PLAIN, "calm"}
    assert (place.path / "README").read_text() == "two!\n"


def test_a_repository_that_was_made_anew_does_not_have_the_work(any_yard: Yard) -> None:
    with pytest.raises(Refused, match="does not have the work of t1") as error:
        prepare(any_yard, "t2", ("t1", "1" * 40))
    assert error.value.error_code == "carry_missing"
    with pytest.raises(Refused, match="does not have the work of t1"):
        prepare(any_yard, "t2", ("t1", "--exec=touch /tmp/x"))


def test_work_without_common_history_is_a_conflict(yard: Yard) -> None:
    one = done(yard, "t1")
    place = prepare(yard, "t2")
    git(place.path, "checkout", "-q", "--orphan", "alone")
    commit(place.path, "alone")
    git(place.path, "checkout", "-q", "-B", "fairlane/t2")
    with pytest.raises(Refused, match="t1 and t2 conflicts: they share no history"):
        prepare(yard, "t3", one, ("t2", head(yard, "t2")))


def test_without_a_base_of_its_own_it_takes_that_of_the_work(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    git(any_yard.repo, "checkout", "-q", "-b", "feature")
    (any_yard.repo / "unfinished").write_text("x\n")
    commit(any_yard.repo, "of the user")
    place = prepare(any_yard, "t2", one)
    assert (place.base, names(place)) == ("main", {*PLAIN, "t1"})
    assert prepare(any_yard, "t2", one).base == "main"
    assert prepare(any_yard, "t3").base == "feature"
    git(any_yard.repo, "branch", "-q", "-D", "main")
    assert prepare(any_yard, "t4", one).base == "feature"


def test_a_base_of_its_own_stays_its_base(any_yard: Yard) -> None:
    one = done(any_yard, "t1")
    git(any_yard.repo, "branch", "release")
    any_yard.change(base="release")
    assert prepare(any_yard, "t2", one).base == "release"


def test_in_the_repository_itself_nothing_is_carried(yard: Yard) -> None:
    one = done(yard, "t1")
    yard.workspaces(mode="shared")
    before = look(yard.repo)
    assert prepare(yard, "t2", one).path == yard.repo
    assert look(yard.repo) == before


@pytest.mark.parametrize("function", ["start_for", "keep_start"])
def test_a_kill_before_the_branch_is_made(
    any_yard: Yard, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = [done(any_yard, name) for name in ("a", "b")]
    kill_at(monkeypatch, function, 1)
    with pytest.raises(Killed):
        prepare(any_yard, "t", *needs)
    monkeypatch.undo()
    prepare(any_yard, "t", *needs)
    assert head(any_yard, "t") == start(any_yard, "t").commit


# Merging.


def test_work_of_others_never_lands_through_a_dependent(any_yard: Yard) -> None:
    one, two = done(any_yard, "t1"), done(any_yard, "t2")
    task = Task("t3", merge="merge")
    place = prepare(any_yard, "t3", one, two)
    (place.path / "own").write_text("own\n")
    desk = "desk" if any_yard.project.workspaces else None
    where = (any_yard.home, any_yard.settings, any_yard.project, task, desk, False)
    work = workspaces.keep_work(*where, attempt=1, success=True)
    assert work is not None
    before = look(any_yard.repo)
    merge = workspaces.deliver(*where, work)
    reason = "it started from work that main does not have: t1, t2"
    assert merge == {
        "state": "waiting", "detail": reason, "commit": None, "url": None, "carries": ["t1", "t2"],
        "files": [], "hold": {"gate": "merge", "code": "carries", "reason": reason, "until": None},
    }  # fmt: skip
    assert workspaces.problem_of(merge) == ""
    assert look(any_yard.repo) == before
    git(any_yard.repo, "merge", "-q", "--no-edit", one[1])
    assert workspaces.deliver(*where, work)["carries"] == ["t2"]
    git(any_yard.repo, "merge", "-q", "--squash", two[1])
    commit(any_yard.repo, "squashed")
    merge = workspaces.deliver(*where, work)
    assert (merge["state"], merge["hold"]) == ("merged", None)
    assert merge["commit"] == git(any_yard.repo, "rev-parse", "main")


def test_protected_files_are_not_merged_by_themselves(yard: Yard) -> None:
    task = Task("t1", merge="merge")
    where = (yard.home, yard.settings, yard.project, task, None, False)
    yard.work(task)
    work = workspaces.keep_work(*where, attempt=1, success=True)
    assert work is not None
    merge = workspaces.deliver(*where, {**work, "protected": ["Makefile"]})
    assert merge["state"] == "waiting"
    assert merge["hold"] is not None
    assert merge["hold"]["code"] == "approval"
    assert merge["files"] == ["Makefile"]
    assert "t1" not in yard.files("main")


def test_kept_work_is_not_merged(yard: Yard) -> None:
    yard.work("t1")
    where = (yard.home, yard.settings, yard.project, Task("t1"), None, False)
    work = workspaces.keep_work(*where, attempt=1, success=True)
    assert work is not None
    assert work["head"] == head(yard, "t1")
    assert workspaces.deliver(*where, work)["state"] == "none"
