"""Submodules are filled from the repository's own copies, and work inside of them is named."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fairlane import workspaces
from fairlane.model.errors import FairlaneError
from fairlane.model.task import Check, Status, Task
from fairlane.workspaces import Place
from tests.workspaces.hostile import Hostile
from tests.workspaces.yard import Yard, commit, git, make_repository

pytestmark = pytest.mark.slow

ALLOW = ("-c", "protocol.file.allow=always")
MERGING = Task("t1", merge="merge")
MODES = ("worktree", "clone")


@pytest.fixture(params=MODES)
def filled(request: pytest.FixtureRequest, yard: Yard, tmp_path: Path) -> Yard:
    """A yard whose repository has submodule `lib` with a submodule `deep/inner` in it."""
    yard.workspaces(mode=request.param)
    return with_submodules(yard, tmp_path)


def with_submodules(yard: Yard, root: Path) -> Yard:
    inner, lib = make_repository(root / "inner"), make_repository(root / "lib")
    (inner / "inner.txt").write_text("inner\n")
    commit(inner, "more")
    git(lib, *ALLOW, "submodule", "--quiet", "add", str(inner), "deep/inner")
    commit(lib, "a submodule")
    git(yard.repo, *ALLOW, "submodule", "--quiet", "add", "--name", "a/library", str(lib), "lib")
    git(yard.repo, *ALLOW, "submodule", "--quiet", "update", "--init", "--recursive")
    commit(yard.repo, "a submodule")
    return yard


def sandboxed(yard: Yard, task: str) -> Place:
    return workspaces.prepare(yard.home, yard.settings, yard.project, Task(task), None, True)


def test_a_new_work_tree_has_them_filled(filled: Yard) -> None:
    place = filled.work(MERGING)
    assert (place.path / "lib" / "README").read_text() == "one\n"
    assert (place.path / "lib" / "deep" / "inner" / "inner.txt").read_text() == "inner\n"
    assert git(place.path, "submodule", "status", "--recursive").count("\n") == 1
    assert "-" not in {line[0] for line in git(place.path, "submodule", "status").splitlines()}
    assert git(place.path / "lib", "status", "--porcelain") == ""
    assert git(place.path / "lib", "log", "--format=%s").splitlines() == ["a submodule", "first"]
    assert git(place.path, "status", "--porcelain") == "?? t1"
    assert filled.finish(MERGING) == ""
    assert "t1" in filled.files("main")
    assert git(filled.repo, "rev-parse", "main:lib") == git(
        filled.repo / "lib", "rev-parse", "HEAD"
    )


def test_a_work_tree_with_clean_submodules_is_removed(filled: Yard) -> None:
    place = filled.work(MERGING)
    assert filled.finish(MERGING) == ""
    left = filled.leftovers(t1=Status.DONE)["t1"]
    assert left.keep == ""
    workspaces.clean(filled.home, left, filled.project)
    assert not place.path.exists()
    assert "fairlane/t1" not in filled.branches()
    assert not list((filled.home / "git").rglob("being_made"))


def test_it_is_refused_where_no_copy_is_here(filled: Yard) -> None:
    git(filled.repo, "submodule", "--quiet", "deinit", "--all")
    shutil.rmtree(filled.repo / ".git" / "modules")
    with pytest.raises(FairlaneError, match=r"submodule lib of .* is not here") as caught:
        filled.prepare("t1")
    assert caught.value.error_code == "no_submodule"
    assert f"`git -C {filled.repo} submodule update --init --recursive`" in caught.value.hint
    git(filled.repo, *ALLOW, "submodule", "--quiet", "update", "--init", "--recursive")
    assert (filled.prepare("t1").path / "lib" / "deep" / "inner" / "inner.txt").exists()


def test_the_commit_must_be_in_the_copy(filled: Yard, tmp_path: Path) -> None:
    new = commit(tmp_path / "lib", "later")
    git(filled.repo, "update-index", "--cacheinfo", f"160000,{new},lib")
    git(filled.repo, "commit", "-q", "-m", "bump")
    with pytest.raises(FairlaneError, match=f"lib of .* at {new[:12]}"):
        filled.prepare("t1")


def test_one_that_is_not_active_stays_empty(filled: Yard) -> None:
    git(filled.repo, "submodule", "--quiet", "deinit", "--all")
    shutil.rmtree(filled.repo / ".git" / "modules")
    git(filled.repo, "config", "submodule.a/library.active", "false")
    place = filled.work(MERGING)
    assert list((place.path / "lib").iterdir()) == []
    assert filled.finish(MERGING) == ""


@pytest.mark.parametrize("where", ["lib", "lib/deep/inner"])
def test_changed_files_in_a_submodule_are_named(filled: Yard, where: str) -> None:
    place = filled.work(MERGING)
    (place.path / where / "README").write_text("by the agent\n")
    words = filled.finish(MERGING)
    assert "has changes inside submodules" in words
    assert f"{where} (files are changed)" in words
    assert (place.path / where / "README").read_text() == "by the agent\n"
    assert "t1" not in filled.files("main")
    assert filled.leftovers(t1=Status.DONE)["t1"].keep
    (place.path / where / "README").write_text("one\n")
    assert filled.finish(MERGING) == ""


@pytest.mark.parametrize("recorded", [False, True])
def test_commits_in_a_submodule_are_no_broken_link(filled: Yard, recorded: bool) -> None:
    place = filled.work(MERGING)
    (place.path / "lib" / "README").write_text("two\n")
    commit(place.path / "lib", "by the agent")
    if recorded:
        commit(place.path, "bump")
    before = git(filled.repo, "rev-parse", "main")
    assert "lib (it has commits of its own)" in filled.finish(MERGING)
    assert git(filled.repo, "rev-parse", "main") == before
    assert filled.leftovers(t1=Status.DONE)["t1"].keep


def test_another_known_commit_may_be_recorded(filled: Yard) -> None:
    place = filled.work(MERGING)
    first = git(place.path / "lib", "rev-parse", "HEAD~1")
    git(place.path / "lib", "checkout", "-q", first)
    assert filled.finish(MERGING) == ""
    assert git(filled.repo, "rev-parse", "main:lib") == first


@pytest.mark.parametrize("globs", [None, ("lib/run",), ("/lib/run",)])
def test_another_commit_of_one_that_a_check_runs_is_marked(
    filled: Yard, globs: tuple[str, ...] | None
) -> None:
    filled.change(checks=(Check("run", ("lib/run",)),), protect=globs)
    place = filled.work(MERGING)
    git(place.path / "lib", "checkout", "-q", "HEAD~1")
    assert filled.keep(MERGING)["protected"] == ["lib"]
    filled.change(checks=(Check("run", ("./run",)),), protect=None)
    assert filled.keep(MERGING)["protected"] == []


def test_a_new_file_in_one_that_a_check_reads_is_marked(filled: Yard) -> None:
    filled.change(checks=(Check("make", ("make", "-C", "lib")),))
    place = filled.work(MERGING)
    (place.path / "lib" / "GNUmakefile").write_text("all:\n")
    assert filled.keep(MERGING)["protected"] == ["lib/GNUmakefile"]


def test_a_retry_finds_its_submodule_as_it_left_it(filled: Yard) -> None:
    place = filled.work(MERGING)
    first = git(place.path / "lib", "rev-parse", "HEAD~1")
    git(place.path / "lib", "checkout", "-q", first)
    filled.leftovers()
    filled.prepare(MERGING)
    assert git(place.path / "lib", "rev-parse", "HEAD") == first


def test_a_submodule_may_be_taken_away(filled: Yard) -> None:
    place = filled.work(MERGING)
    git(place.path, "rm", "-q", "-f", "lib")
    assert filled.finish(MERGING) == ""
    assert filled.files("main") == [".gitmodules", "README", "src/code", "t1"]


def test_files_without_their_git_folder_are_not_lost(filled: Yard) -> None:
    place = filled.work(MERGING)
    shutil.rmtree(place.path / "lib" / ".git")
    (place.path / "lib" / "README").write_text("by the agent\n")
    assert "lib (its git folder is not the one that it had)" in filled.finish(MERGING)


def test_other_branches_and_new_files_in_it_keep_the_work_tree(filled: Yard) -> None:
    place = filled.work(MERGING)
    assert filled.finish(MERGING) == ""
    (place.path / "lib" / "new").write_text("new\n")
    assert "not committed" in filled.leftovers(t1=Status.DONE)["t1"].keep
    git(place.path / "lib", "checkout", "-q", "-b", "other")
    commit(place.path / "lib", "by the agent")
    git(place.path / "lib", "checkout", "-q", "--detach", "HEAD~1")
    assert "heads/other has commits" in filled.leftovers(t1=Status.DONE)["t1"].keep


def test_a_crash_while_filling_is_made_good(filled: Yard) -> None:
    place = filled.prepare("t1")
    (own,) = [path.parent for path in (filled.home / "git").rglob("filled") if _is_of(path, place)]
    (own / "being_made").touch()
    (place.path / "lib" / "README").unlink()
    filled.prepare("t1")
    assert (place.path / "lib" / "README").exists()
    assert (place.path / "lib" / "deep" / "inner" / "inner.txt").exists()


def _is_of(filled: Path, place: Place) -> bool:
    """Whether it is the record of `lib`, and not of the one in it."""
    return (place.path / "lib" / ".git" / "HEAD").read_text() == (
        filled.parent / "HEAD"
    ).read_text()


def test_a_pool_brings_them_to_the_commit_of_each_task(yard: Yard, tmp_path: Path) -> None:
    with_submodules(yard, tmp_path)
    old = git(yard.repo / "lib", "rev-parse", "HEAD~1")
    git(yard.repo, "branch", "older")
    yard.change(workspaces=("w1",))
    place = yard.prepare("t1", "w1")
    assert (place.path / "lib" / "deep" / "inner" / "inner.txt").exists()
    git(yard.repo / "lib", "checkout", "-q", old)
    commit(yard.repo, "back")
    yard.prepare("t2", "w1")
    assert git(place.path / "lib", "rev-parse", "HEAD") == old
    yard.prepare(Task("t3", base="older"), "w1")
    assert git(place.path / "lib", "rev-parse", "HEAD") != old
    (place.path / "lib" / "README").write_text("by t3\n")
    with pytest.raises(FairlaneError, match=r"lib \(files are changed\)"):
        yard.prepare("t4", "w1")
    assert (place.path / "lib" / "README").read_text() == "by t3\n"


def test_a_sandbox_may_read_the_objects(yard: Yard, tmp_path: Path) -> None:
    with_submodules(yard, tmp_path)
    reads = sandboxed(yard, "t1").reads
    modules = yard.repo / ".git" / "modules" / "a" / "library"
    assert modules / "objects" in reads
    assert modules / "modules" / "deep" / "inner" / "objects" in reads


def test_a_git_folder_inside_of_the_checkout_is_a_copy_too(yard: Yard, tmp_path: Path) -> None:
    """As git made it long ago, and as `git clone` in place does."""
    lib = make_repository(tmp_path / "lib")
    git(yard.repo, "clone", "-q", str(lib), "lib")
    (yard.repo / ".gitmodules").write_text(f'[submodule "lib"]\n\tpath = lib\n\turl = {lib}\n')
    commit(yard.repo, "a submodule")
    assert (yard.prepare("t1").path / "lib" / "README").exists()


def test_a_link_that_is_not_declared_stays_empty(yard: Yard, tmp_path: Path) -> None:
    git(yard.repo, "clone", "-q", str(make_repository(tmp_path / "lib")), "lib")
    commit(yard.repo, "no submodule")
    place = yard.work(MERGING)
    assert list((place.path / "lib").iterdir()) == []
    assert yard.finish(MERGING) == ""


@pytest.mark.parametrize("name", ["..", "../../other", "a/../../../other", "x\\..\\..\\other", ""])
def test_a_name_does_not_lead_out_of_the_modules(hostile: Hostile, name: str) -> None:
    """Its git folder would be another repository's."""
    yard = hostile.yard
    (yard.repo / "other").mkdir(exist_ok=True)
    link = git(hostile.other, "rev-parse", "HEAD")
    text = f'[submodule "{name}"]\n\tpath = sub\n\turl = {hostile.other}\n'
    (yard.repo / ".gitmodules").write_text(text.replace("\\", "\\\\"))
    git(yard.repo, "update-index", "--add", "--cacheinfo", f"160000,{link},sub")
    git(yard.repo, "add", ".gitmodules")
    git(yard.repo, "commit", "-q", "-m", "a submodule")
    (yard.repo / ".git" / "modules").mkdir(exist_ok=True)
    place = yard.prepare("t1")
    assert list((place.path / "sub").iterdir()) == []
    hostile.assert_harmless()


@pytest.mark.parametrize("place", ["modules", "modules/sub", "modules/sub/objects"])
def test_a_link_among_the_modules_leads_nowhere(hostile: Hostile, place: str) -> None:
    yard = hostile.yard
    submodule_of(hostile)
    folder = yard.repo / ".git" / place
    shutil.rmtree(folder)
    target = {"modules": "", "modules/sub": ".git", "modules/sub/objects": ".git/objects"}[place]
    folder.symlink_to(hostile.other / target)
    with pytest.raises(FairlaneError):
        yard.prepare("t1")
    hostile.assert_harmless()


def submodule_of(hostile: Hostile) -> None:
    yard = hostile.yard
    git(yard.repo, *ALLOW, "submodule", "--quiet", "add", str(hostile.other), "sub")
    commit(yard.repo, "a submodule")


def test_programs_of_a_copy_do_not_run(hostile: Hostile) -> None:
    yard, modules = hostile.yard, hostile.yard.repo / ".git" / "modules" / "sub"
    submodule_of(hostile)
    hostile.hooks(modules / "hooks")
    for name in (
        "core.fsmonitor",
        "core.sshCommand",
        "filter.x.smudge",
        "uploadpack.packObjectsHook",
    ):
        git(modules, "config", name, str(hostile.program))
    git(modules, "config", "core.hooksPath", str(modules / "hooks"))
    (modules / "info").mkdir(exist_ok=True)
    yard.project = replace(yard.project, hooks="repo")
    place = yard.work(MERGING)
    assert (place.path / "sub" / "README").exists()
    assert yard.finish(MERGING) == ""
    left = yard.leftovers(t1=Status.DONE)["t1"]
    assert left.keep == ""
    workspaces.clean(yard.home, left, yard.project)
    hostile.assert_harmless()


def test_programs_of_its_agent_do_not_run(hostile: Hostile) -> None:
    yard = hostile.yard
    submodule_of(hostile)
    sub = yard.work(MERGING).path / "sub"
    hostile.hooks(sub / ".git" / "hooks")
    for name in ("core.fsmonitor", "filter.x.clean"):
        git(sub, "config", name, str(hostile.program))
    git(sub, "config", "core.worktree", str(hostile.other))
    yard.prepare(MERGING)
    assert yard.finish(MERGING) == ""
    left = yard.leftovers(t1=Status.DONE)["t1"]
    assert left.keep == ""
    workspaces.clean(yard.home, left, yard.project)
    hostile.assert_harmless()


def test_a_folder_that_became_a_link_is_not_written_through(hostile: Hostile) -> None:
    yard = hostile.yard
    submodule_of(hostile)
    sub = yard.prepare("t1").path / "sub"
    shutil.rmtree(sub)
    sub.symlink_to(hostile.other)
    with pytest.raises(FairlaneError, match="is no folder"):
        yard.prepare("t1")
    hostile.assert_harmless()


def test_one_that_is_declared_no_more_is_named(filled: Yard) -> None:
    place = filled.work(MERGING)
    (place.path / ".gitmodules").write_text("")
    commit(place.path / "lib", "by the agent")
    commit(place.path, "bump")
    assert "repositories inside that cannot be committed: lib" in filled.finish(MERGING)


def test_a_repository_that_an_agent_declares_is_still_named(hostile: Hostile) -> None:
    yard = hostile.yard
    submodule_of(hostile)
    place = yard.work(MERGING)
    git(place.path, *ALLOW, "submodule", "--quiet", "add", str(hostile.other), "mine")
    commit(place.path, "by the agent")
    assert "mine" in yard.finish(MERGING)
    yard.prepare(MERGING)
    assert yard.leftovers(t1=Status.DONE)["t1"].keep
    hostile.assert_harmless()
