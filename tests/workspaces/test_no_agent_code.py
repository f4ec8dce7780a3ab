"""Git runs nothing that an agent wrote: no hook, no monitor, no filter, no driver."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from fairlane import workspaces
from fairlane.model.errors import FairlaneError
from fairlane.model.task import Status, Task
from tests.workspaces.hostile import Hostile
from tests.workspaces.yard import Yard, commit, git, make_repository

pytestmark = pytest.mark.slow

MERGING = Task("t1", merge="merge")


def go_through(yard: Yard, task: Task) -> str:
    """Everything that the daemon does after the agent: finish, list, clean, the next attempt."""
    problem = yard.finish(task)
    yard.leftovers(t1=Status.PARKED)
    for leftover in yard.leftovers(t1=Status.DONE).values():
        if not leftover.keep:
            with suppress(FairlaneError):
                workspaces.clean(yard.home, leftover, yard.project)
    with suppress(FairlaneError):
        yard.prepare(task)
    return problem


def finished(hostile: Hostile) -> None:
    """The work is merged, and nothing of the agent's ran."""
    yard = hostile.yard
    commit(yard.repo, "meanwhile")
    hostile.witness.unlink(missing_ok=True)  # this commit, by a person, may run hooks
    assert go_through(yard, MERGING) == ""
    hostile.assert_harmless()
    assert "t1" in yard.files("main")


def test_hooks_of_the_repository(hostile: Hostile) -> None:
    hostile.yard.work(MERGING)
    hostile.hooks(hostile.common / "hooks")
    finished(hostile)


def test_a_folder_of_hooks_that_the_configuration_names(hostile: Hostile, tmp_path: Path) -> None:
    hostile.yard.work(MERGING)
    hostile.hooks(tmp_path / "hooks")
    hostile.config(f"core.hooksPath={tmp_path / 'hooks'}")()
    finished(hostile)


@pytest.mark.parametrize(
    "pairs",
    [
        ("core.fsmonitor",),
        (
            "commit.gpgSign=true",
            "gpg.program",
            "gpg.openpgp.program",
            "merge.verifySignatures=true",
        ),
        ("commit.gpgSign=true", "gpg.format=ssh", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand"),
        ("core.editor", "sequence.editor", "core.pager", "pager.status", "pager.config"),
        ("diff.external", "diff.x.command", "diff.x.textconv", "merge.stat=true"),
        ("alias.status=!evil", "gc.auto=1", "gc.recentObjectsHook", "core.alternateRefsCommand"),
        ("hook.x.command", "hook.x.event=reference-transaction", "submodule.recurse=true"),
    ],
    ids=lambda pairs: pairs[-1].partition("=")[0],
)
def test_programs_that_the_configuration_names(hostile: Hostile, pairs: tuple[str, ...]) -> None:
    place = hostile.yard.work(MERGING)
    (place.path / ".gitattributes").write_text("* diff=x\n")
    commit(hostile.yard.repo, "later")
    hostile.config(*pairs)()
    assert go_through(hostile.yard, MERGING) == ""
    assert not hostile.witness.exists()
    assert "t1" in hostile.yard.files("main")


def test_the_configuration_of_one_worktree(hostile: Hostile) -> None:
    place = hostile.yard.work(MERGING)
    git(place.path, "config", "extensions.worktreeConfig", "true")
    hostile.hooks(hostile.common / "other-hooks")
    git(place.path, "config", "--worktree", "core.hooksPath", str(hostile.common / "other-hooks"))
    git(place.path, "config", "--worktree", "core.fsmonitor", str(hostile.program))
    hostile.witness.unlink(missing_ok=True)
    assert go_through(hostile.yard, MERGING) == ""
    hostile.assert_harmless()
    assert "t1" in hostile.yard.files("main")


@pytest.mark.parametrize(
    ("scope", "name", "kind"),
    [
        ("--local", "x", "clean"),
        ("--local", "x", "process"),
        ("--local", "x", "smudge"),
        ("--local", "x=y.z", "clean"),
        ("--worktree", "x", "clean"),
    ],
)
def test_a_filter_of_the_repository_parks_and_does_not_run(
    hostile: Hostile, scope: str, name: str, kind: str
) -> None:
    yard = hostile.yard
    place = yard.work(MERGING)
    (place.path / ".gitattributes").write_text(f"t1 filter={name}\n")
    git(place.path, "config", "extensions.worktreeConfig", "true")
    git(place.path, "config", scope, f"filter.{name}.{kind}", str(hostile.program))
    problem = go_through(yard, MERGING)
    assert f"filter '{name}' failed" in problem
    assert "git config --global" in problem
    assert not hostile.witness.exists()
    assert (place.path / "t1").exists()
    assert yard.log("fairlane/t1") == yard.log("main") == ["first"]


def test_removing_a_worktree_runs_no_filter_of_it(hostile: Hostile) -> None:
    yard = hostile.yard
    place = yard.work(MERGING)
    (place.path / ".gitattributes").write_text("t1 filter=x\n")
    assert yard.finish(MERGING) == ""
    leftover = yard.leftovers(t1=Status.DONE)["t1"]
    assert leftover.keep == ""
    git(place.path, "config", "extensions.worktreeConfig", "true")
    git(place.path, "config", "--worktree", "filter.x.clean", str(hostile.program))
    (place.path / "t1").write_text("work")  # git has to look at it
    with pytest.raises(FairlaneError):
        workspaces.clean(yard.home, leftover, yard.project)
    hostile.assert_harmless()
    assert (place.path / "t1").read_text() == "work"


def test_a_filter_of_the_user_runs_whatever_the_repository_says_of_it(
    hostile: Hostile, tmp_path: Path
) -> None:
    yard = hostile.yard
    git(yard.repo, "config", "--global", "filter.case.clean", "tr a-z A-Z")
    git(yard.repo, "config", "--global", "filter.case.smudge", "tr A-Z a-z")
    git(yard.repo, "config", "--global", "filter.case.required", "true")
    place = yard.work(MERGING, "words")
    (place.path / ".gitattributes").write_text("t1 filter=case\n")
    hostile.config("filter.case.clean", "filter.case.smudge")()
    assert yard.finish(MERGING) == ""
    hostile.assert_harmless()
    assert git(yard.repo, "show", "main:t1") == "WORDS"
    assert (yard.repo / "t1").read_text() == "words"
    hostile.config("filter.case.process")()  # git would take it first, and it is not the user's
    (place.path / "t1").write_text("more")
    assert yard.finish(MERGING) == ""
    hostile.assert_harmless()
    assert git(yard.repo, "show", "main:t1") == "MORE"


def test_a_merge_driver_of_the_repository_is_a_conflict(hostile: Hostile) -> None:
    yard = hostile.yard
    (yard.repo / ".gitattributes").write_text("README merge=x\n")
    commit(yard.repo, "attributes")
    place = yard.prepare(MERGING)
    (place.path / "README").write_text("theirs\n")
    (yard.repo / "README").write_text("ours\n")
    commit(yard.repo, "ours")
    hostile.config("merge.x.driver")()
    assert yard.finish(MERGING) == "merge conflict with main: README"
    hostile.assert_harmless()
    git(yard.repo, "config", "--global", "merge.x.driver", "cat %B >> %A")  # the user's own
    assert yard.finish(MERGING) == ""
    assert git(yard.repo, "show", "main:README") == "ours\ntheirs"
    hostile.assert_harmless()


def test_a_missing_object_is_not_fetched(hostile: Hostile) -> None:
    yard = hostile.yard
    yard.work(MERGING)
    hostile.config(
        "core.repositoryFormatVersion=1", "extensions.partialClone=evil",
        "remote.evil.promisor=true", f"remote.evil.url=ext::touch {hostile.witness}",
        "protocol.ext.allow=always",
    )()  # fmt: skip
    (hostile.common / "refs" / "heads" / "fairlane" / "t1").write_text("1" * 40 + "\n")
    assert go_through(yard, MERGING) != ""
    hostile.assert_harmless()


@pytest.mark.parametrize("added", ["", "add", "commit"])
def test_a_nested_repository_is_named_and_not_committed(hostile: Hostile, added: str) -> None:
    yard = hostile.yard
    place = yard.work(MERGING)
    nested = make_repository(place.path / "a" / "sub")
    (place.path / "a" / "file").write_text("work\n")
    if added:
        git(place.path, "-c", "advice.addEmbeddedRepo=false", "add", "a/sub")
    if added == "commit":
        git(place.path, "commit", "-q", "-m", "by the agent")
    git(nested, "config", "core.fsmonitor", str(hostile.program))
    before = git(yard.repo, "rev-parse", "fairlane/t1")
    problem = go_through(yard, MERGING)
    hostile.assert_harmless()
    assert "a/sub" in problem
    assert "`fairlane retry t1`" in problem
    assert git(yard.repo, "rev-parse", "fairlane/t1") == before
    assert yard.log("main") == ["first"]
    assert (nested / "README").read_text() == "one\n"


def test_a_nested_repository_in_a_pool_keeps_the_next_task_out(hostile: Hostile) -> None:
    yard = hostile.yard
    yard.change(workspaces=("w1",))
    place = yard.work("t1", workspace="w1")
    nested = make_repository(place.path / "sub")
    git(nested, "config", "core.fsmonitor", str(hostile.program))
    with pytest.raises(FairlaneError, match="sub"):
        yard.prepare("t2", "w1")
    hostile.assert_harmless()
    assert yard.log("fairlane/t1") == ["first"]
    assert (nested / "README").exists()


def with_submodule(hostile: Hostile) -> Path:
    """A task's worktree whose submodule, known to the repository, is checked out."""
    yard = hostile.yard
    allow = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(yard.repo, *allow, "add", str(hostile.other), "sub")
    commit(yard.repo, "a submodule")
    place = yard.work(MERGING)
    git(place.path, *allow, "update", "--init", "sub")
    return place.path / "sub"


def test_a_submodule_is_not_looked_into(hostile: Hostile) -> None:
    yard = hostile.yard
    sub = with_submodule(hostile)
    (sub / ".gitattributes").write_text("* filter=x\n")
    (sub / "README").write_text("two\n")
    for name in ("core.fsmonitor", "filter.x.clean"):
        git(sub, "config", name, str(hostile.program))
    assert "sub (files are changed)" in go_through(yard, MERGING)
    hostile.assert_harmless()
    assert "t1" not in yard.files("main")


def test_a_submodule_moves_on_and_its_worktree_stays(hostile: Hostile) -> None:
    yard = hostile.yard
    sub = with_submodule(hostile)
    commit(sub, "by the agent")
    assert "sub (it has commits of its own)" in yard.finish(MERGING)
    assert yard.leftovers(t1=Status.DONE)["t1"].keep
    hostile.assert_harmless()


def test_the_repository_itself_is_safe_from_its_agents_too(hostile: Hostile) -> None:
    yard = hostile.yard
    yard.workspaces(mode="shared")
    yard.work("t1", workspace="shared")
    hostile.hooks(hostile.common / "hooks")
    hostile.config("core.fsmonitor")()
    assert yard.finish("t1", "shared") == ""
    yard.prepare("t2", "shared")
    yard.leftovers()
    hostile.assert_harmless()


@pytest.mark.parametrize("where", ["onbranch:fairlane/t2", "gitdir:{common}/worktrees/t2"])
def test_settings_that_hold_in_the_next_worktree_alone(
    hostile: Hostile, tmp_path: Path, where: str
) -> None:
    hostile.yard.work("t1")
    included = tmp_path / "included"
    included.write_text(f'[filter "b"]\n\tsmudge = {hostile.program}\n')
    name = f"includeIf.{where.format(common=hostile.common)}.path"
    git(hostile.yard.repo, "config", name, str(included))
    (hostile.common / "info").mkdir(exist_ok=True)
    (hostile.common / "info" / "attributes").write_text("* filter=b\n")
    with suppress(FairlaneError):
        hostile.yard.prepare("t2")
    hostile.assert_harmless()


def test_a_worktree_that_was_not_filled_is_made_anew(hostile: Hostile) -> None:
    """Killed between making and filling it: nobody takes the empty folder for work."""
    place = hostile.yard.prepare("t1")
    (hostile.common / "worktrees" / "t1" / "locked").write_text("initializing")
    for file in place.path.iterdir():
        if file.is_file() and file.name != ".git":
            file.unlink()
    hostile.yard.prepare("t1")
    assert hostile.yard.finish("t1") == ""
    assert hostile.yard.files("fairlane/t1") == hostile.yard.files("main")
