"""Changes that an agent hides from git: what is checked is what is recorded, marked and merged."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fairlane.model.errors import FairlaneError
from fairlane.model.task import Check, Task
from fairlane.workspaces.work.keep_refs import forget_work
from tests.workspaces.yard import Yard, commit, git

pytestmark = pytest.mark.slow

MERGE = Task("t1", merge="merge")


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    """A repository whose check is `make test`."""
    yard = Yard(tmp_path)
    (yard.repo / "Makefile").write_text("test:\n\tfalse\n")
    (yard.repo / "test_code").write_text("wrong\n")
    commit(yard.repo, "make")
    yard.change(checks=(Check("make test", ("make", "test")),))
    return yard


def makefile(yard: Yard, at: str = "main") -> str:
    return git(yard.repo, "show", f"{at}:Makefile")


def hidden_by_flag(folder: Path, flag: str) -> None:
    git(folder, "update-index", flag, "Makefile", "test_code")
    (folder / "Makefile").write_text("test:\n\ttrue\n")
    (folder / "test_code").unlink()


def hidden_by_time(folder: Path) -> None:
    """The same size and time as before, where git is told to look at nothing else."""
    git(folder, "config", "core.checkStat", "minimal")
    git(folder, "config", "core.trustctime", "false")
    file = folder / "Makefile"
    os.utime(file, (1, 1))
    git(folder, "update-index", "--refresh")
    file.write_text("test:\n\ttrue;\n")
    os.utime(file, (1, 1))
    (folder / "test_code").unlink()
    assert git(folder, "status", "--porcelain", "Makefile") == ""


def hidden_by_sparse(folder: Path) -> None:
    (folder / "Makefile").write_text("test:\n\ttrue\n")
    git(folder, "update-index", "--skip-worktree", "Makefile")
    git(folder, "sparse-checkout", "set", "--no-cone", "/*", "!/test_code")
    assert not (folder / "test_code").exists()


HIDDEN = {
    "assumed": lambda folder: hidden_by_flag(folder, "--assume-unchanged"),
    "skipped": lambda folder: hidden_by_flag(folder, "--skip-worktree"),
    "time": hidden_by_time,
    "sparse": hidden_by_sparse,
}


@pytest.mark.parametrize("way", HIDDEN)
def test_the_index_of_an_agent_hides_nothing(yard: Yard, way: str) -> None:
    place = yard.work(MERGE)
    HIDDEN[way](place.path)
    work = yard.keep(MERGE)
    assert work["protected"] == ["Makefile"]
    assert {row["path"]: row["change"] for row in work["files"]} == {
        "Makefile": "M", "t1": "A", "test_code": "D",
    }  # fmt: skip
    yard.finish(MERGE)
    assert "false" in makefile(yard)


def test_what_is_staged_is_kept(yard: Yard) -> None:
    """Also what is ignored, and what is only meant to be added."""
    place = yard.work(MERGE)
    (place.path / ".gitignore").write_text("out\n")
    (place.path / "out").write_text("forced\n")
    (place.path / "later").write_text("later\n")
    git(place.path, "add", "-f", "out")
    git(place.path, "add", "-N", "later")
    yard.keep(MERGE)
    assert {"out", "later", "t1"} <= set(yard.files("fairlane/t1"))


@pytest.mark.parametrize("name", ["t1", "t1/1/x"])
def test_work_that_git_cannot_keep_is_not_merged_unmarked(yard: Yard, name: str) -> None:
    place = yard.work(MERGE)
    (place.path / "Makefile").write_text("test:\n\ttrue\n")
    git(place.path, "update-ref", f"refs/fairlane/keep/{name}", "HEAD")
    yard.finish(MERGE)
    assert "false" in makefile(yard)


def test_a_reference_that_leads_elsewhere_is_replaced(yard: Yard) -> None:
    place, before = yard.work("t1"), git(yard.repo, "rev-parse", "main")
    git(place.path, "symbolic-ref", "refs/fairlane/keep/t1/1", "refs/heads/main")
    work = yard.keep("t1")
    assert git(yard.repo, "rev-parse", "main") == before
    assert git(yard.repo, "rev-parse", "refs/fairlane/keep/t1/1") == work["head"]


def test_what_a_merge_takes_back_is_a_change_of_the_base(yard: Yard) -> None:
    """It started from work that is in the base by now, and threw away what else is there."""
    yard.work("t0")
    head = yard.keep("t0")["head"]
    assert head is not None
    place = yard.prepare(MERGE, starts=[("t0", head)])
    git(yard.repo, "merge", "-q", head)
    (yard.repo / "Makefile").write_text("test:\n\t./stricter\n")
    commit(yard.repo, "a stricter check")
    git(place.path, "merge", "-q", "-s", "ours", "-m", "Bring it up", "main")
    (place.path / "t1").write_text("work\n")
    assert yard.finish(MERGE) == ""
    assert "stricter" in makefile(yard)


def test_what_a_user_leaves_out_is_no_change(yard: Yard) -> None:
    git(yard.repo, "sparse-checkout", "set", "--no-cone", "/*", "!/test_code")
    place = yard.work(MERGE)
    assert not (place.path / "test_code").exists()
    assert [row["path"] for row in yard.keep(MERGE)["files"]] == ["t1"]


def test_a_reference_that_leads_elsewhere_is_forgotten_alone(yard: Yard) -> None:
    yard.work("t1")
    git(yard.repo, "symbolic-ref", "refs/fairlane/keep/t1/2", "refs/heads/main")
    yard.keep("t1")
    assert forget_work(yard.home, yard.project, set) == {"t1"}
    assert git(yard.repo, "for-each-ref", "refs/fairlane") == ""
    assert git(yard.repo, "rev-parse", "main")


@pytest.mark.parametrize("where", [".gitignore", "sub/.gitignore", "exclude"])
def test_an_ignored_file_that_a_check_reads_is_marked(yard: Yard, where: str) -> None:
    """Make prefers it to the Makefile, and no commit has it."""
    place = yard.prepare(MERGE)
    (place.path / "sub").mkdir()
    rules = yard.repo / ".git" / "info" / "exclude"
    rules = rules if where == "exclude" else place.path / where
    rules.write_text("GNUmakefile\n")
    name = "sub/GNUmakefile" if where.startswith("sub") else "GNUmakefile"
    (place.path / name).write_text("test:\n\ttrue\n")
    (place.path / "t1").write_text("work\n")
    assert yard.keep(MERGE)["protected"] == [name]
    yard.finish(MERGE)
    assert "t1" not in yard.files("main")


@pytest.mark.parametrize("nested", [False, True])
def test_a_new_rule_hides_no_folder(yard: Yard, nested: bool) -> None:
    """Also not one that is a repository: git does not name its files."""
    place = yard.work(MERGE)
    (place.path / ".gitignore").write_text("conf/\n")
    (place.path / "conf").mkdir()
    (place.path / "conf" / "a.mk").write_text("CHECK = true\n")
    if nested:
        git(place.path / "conf", "init", "-q")
    assert yard.keep(MERGE)["protected"] == ["conf/a.mk"]
    yard.finish(MERGE)
    assert "t1" not in yard.files("main")


def test_an_exception_that_is_taken_back_hides_nothing(yard: Yard) -> None:
    rules = "*\n!.gitignore\n!Makefile\n!GNUmakefile\n!t1\n"
    (yard.repo / ".gitignore").write_text(rules)
    commit(yard.repo, "rules")
    place = yard.work(MERGE)
    (place.path / ".gitignore").write_text(rules.replace("!GNUmakefile\n", ""))
    (place.path / "GNUmakefile").write_text("test:\n\ttrue\n")
    assert yard.keep(MERGE)["protected"] == ["GNUmakefile"]


@pytest.mark.parametrize("where", [".gitattributes", "info"])
def test_a_conversion_hides_nothing(yard: Yard, where: str) -> None:
    """To git the file is what it was; to make it has no command any more."""
    place = yard.work(MERGE)
    rules = yard.repo / ".git" / "info" / "attributes" if where == "info" else place.path / where
    rules.write_text("Makefile working-tree-encoding=UTF-7\n")
    (place.path / "Makefile").write_text("test:+AAoACQ-false\n")
    work = yard.keep(MERGE)
    assert "Makefile" not in {row["path"] for row in work["files"]}
    assert work["protected"] == ["Makefile"]
    yard.finish(MERGE)
    assert "t1" not in yard.files("main")


def test_line_ends_that_an_agent_changes_are_a_change(yard: Yard) -> None:
    (yard.repo / ".gitattributes").write_text("* text=auto\n")
    commit(yard.repo, "rules")
    place = yard.work(MERGE)
    (place.path / "Makefile").write_bytes(b"test:\r\n\tfalse\r\n")
    assert yard.keep(MERGE)["protected"] == ["Makefile"]


def test_what_the_repository_converts_is_no_change(yard: Yard) -> None:
    rules = "*.mk text eol=crlf\nMakefile ident\n*.yml working-tree-encoding=UTF-16LE\n"
    (yard.repo / ".gitattributes").write_text(rules)
    (yard.repo / "a.mk").write_bytes(b"A = 1\r\n")
    (yard.repo / ".drone.yml").write_bytes("a: 1\n".encode("utf-16-le"))
    (yard.repo / "Makefile").write_text("# $Id$\ntest:\n\ttrue\n")
    commit(yard.repo, "rules")
    place = yard.work(MERGE)
    assert b"\r\n" in (place.path / "a.mk").read_bytes()
    assert "$Id: " in (place.path / "Makefile").read_text()
    assert yard.keep(MERGE)["protected"] == []
    yard.finish(MERGE)
    assert "t1" in yard.files("main")


def test_files_that_an_agent_leaves_out_are_a_change(yard: Yard) -> None:
    place = yard.work(MERGE)
    git(place.path, "config", "core.sparseCheckout", "true")
    git(place.path, "update-index", "--skip-worktree", "Makefile")
    (place.path / "Makefile").unlink()
    assert yard.keep(MERGE)["protected"] == ["Makefile"]


def test_a_name_that_no_file_can_have_is_named(yard: Yard) -> None:
    place = yard.work(MERGE)
    blob = git(place.path, "hash-object", "-w", "t1")
    row = f"100644 {blob}\t{'A' * 200_000}\n"
    subprocess.run(
        ["git", "update-index", "--index-info"], cwd=place.path, input=row.encode(), check=True
    )
    git(place.path, "commit", "-qm", "long")
    assert yard.keep(MERGE).get("problem") == "a commit has a name of over 128 KiB"
    yard.finish(MERGE)
    assert "t1" not in yard.files("main")


def test_what_the_repository_ignores_is_not(yard: Yard) -> None:
    (yard.repo / ".gitignore").write_text("/config.mk\nnode_modules/\n")
    commit(yard.repo, "rules")
    place = yard.work(MERGE)
    for name in ("config.mk", "node_modules/a/Makefile"):
        (place.path / name).parent.mkdir(parents=True, exist_ok=True)
        (place.path / name).write_text("built\n")
    assert yard.keep(MERGE)["protected"] == []
    yard.finish(MERGE)
    assert "t1" in yard.files("main")


def test_what_is_left_uncommitted_was_not_checked_alone(yard: Yard) -> None:
    yard.workspaces(commit="none")
    place = yard.work(MERGE)
    commit(place.path, "a part")
    (place.path / "rest").write_text("the rest\n")
    assert yard.finish(MERGE) == ""
    assert "t1" not in yard.files("main")


def test_what_a_protected_link_leads_to_is_protected(yard: Yard) -> None:
    """Also through another link, and what lies in a folder."""
    for name, content in (
        ("build/rules", "test:\n\tfalse\n"),
        ("ci/run.yml", "run\n"),
        ("tools/own", "x\n"),
    ):
        (yard.repo / name).parent.mkdir()
        (yard.repo / name).write_text(content)
    for name, target in (
        ("Makefile", "build/link"), ("build/link", "../build/rules"), (".github", "ci"),
        ("scripts", "tools"), ("outside", "/etc"), ("loop", "loop"),
    ):  # fmt: skip
        (yard.repo / name).unlink(missing_ok=True)
        (yard.repo / name).symlink_to(target)
    commit(yard.repo, "links")
    yard.change(checks=(*yard.project.checks, Check("own", ("scripts/own", "loop/x"))))
    place = yard.work(MERGE)
    (place.path / "build" / "rules").write_text("test:\n\ttrue\n")
    (place.path / "ci" / "run.yml").write_text("run nothing\n")
    (place.path / "tools" / "own").write_text("true\n")
    (place.path / "tools" / "other").write_text("true\n")
    assert yard.keep(MERGE)["protected"] == ["build/rules", "ci/run.yml", "tools/own"]
    yard.finish(MERGE)
    assert "t1" not in yard.files("main")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
@pytest.mark.parametrize("when", ["before", "while it works"])
def test_a_branch_that_leads_to_another_is_not_written(yard: Yard, mode: str, when: str) -> None:
    """Somebody made the branch of a task lead to `main`: what the task commits would land there."""
    yard.workspaces(mode=mode)
    before = git(yard.repo, "rev-parse", "main")
    if when == "before":
        git(yard.repo, "symbolic-ref", "refs/heads/fairlane/t1", "refs/heads/main")
        with pytest.raises(FairlaneError, match="on main, not on fairlane/t1"):
            yard.work("t1")
    else:
        yard.work("t1")
        git(yard.repo, "symbolic-ref", "refs/heads/fairlane/t1", "refs/heads/main")
        assert "on main, not on fairlane/t1" in yard.finish("t1")
    assert git(yard.repo, "rev-parse", "main") == before


def test_nor_is_one_that_waits_for_what_is_fetched(yard: Yard) -> None:
    yard.workspaces(mode="clone")
    before = git(yard.repo, "rev-parse", "main")
    place = yard.work("t1")
    head = commit(place.path, "work")
    git(yard.repo, "symbolic-ref", f"refs/fairlane/fetched/{head}", "refs/heads/main")
    assert yard.finish("t1") == ""
    assert git(yard.repo, "rev-parse", "main", "fairlane/t1").split() == [before, head]
