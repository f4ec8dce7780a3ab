"""A hostile clone: its branch is fetched or refused by name, and git never runs in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane.workspaces import upload
from tests.attackers import git_ground
from tests.attackers.git_ground import MERGING, Attack
from tests.workspaces.hostile import HOOKS, Hostile
from tests.workspaces.yard import commit, git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(100)]  # below the time limit of one git
hostile, yard = git_ground.hostile, git_ground.yard

Trick = Callable[[Attack], object]


@pytest.fixture(params=["bwrap", "plain"])
def attack(
    hostile: Hostile, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Attack:
    """In a clone that is fetched with bwrap, and in one that is fetched without."""
    if request.param == "bwrap" and not upload._has_bwrap():
        pytest.skip("bwrap cannot run here")
    if request.param == "plain":
        monkeypatch.setattr(upload, "_has_bwrap", lambda: False)
    return Attack(hostile, "clone")


def a_commit_of_another_repository(attack: Attack) -> None:
    """Its alternates would let the fetch read any repository that the user can read."""
    theirs = commit(attack.hostile.other, "secret")
    alternates = attack.dot / "objects" / "info" / "alternates"
    alternates.write_text(f"{alternates.read_text()}{attack.hostile.other}/.git/objects\n")
    (attack.dot / "refs" / "heads" / "fairlane" / "t1").write_text(f"{theirs}\n")


def a_commit_that_is_not_there(attack: Attack) -> None:
    theirs = commit(attack.hostile.other, "secret")
    (attack.dot / "refs" / "heads" / "fairlane" / "t1").write_text(f"{theirs}\n")


def a_file_named_git(attack: Attack) -> None:
    """A tree with an entry `.git` would become a git folder wherever it is checked out."""
    blob = git(attack.path, "hash-object", "-w", "README")
    listing = f"100644 blob {blob}\t.git\n"
    made = subprocess.run(
        ["git", "-C", str(attack.path), "mktree"], input=listing, text=True, check=True,
        capture_output=True,
    ).stdout.strip()  # fmt: skip
    who = ("-c", "user.name=x", "-c", "user.email=x")
    new = git(attack.path, *who, "commit-tree", made, "-p", "HEAD", "-m", "evil")
    git(attack.path, "update-ref", "refs/heads/fairlane/t1", new)


def a_gitdir_file(attack: Attack) -> None:
    git(attack.hostile.other, "branch", "fairlane/t1")
    shutil.rmtree(attack.dot)
    attack.dot.write_text(f"gitdir: {attack.hostile.other}/.git\n")


def a_link_for_the_git_folder(attack: Attack) -> None:
    git(attack.hostile.other, "branch", "fairlane/t1")
    shutil.rmtree(attack.dot)
    attack.dot.symlink_to(attack.hostile.other / ".git")


def a_link_for_the_clone(attack: Attack) -> None:
    git(attack.hostile.other, "checkout", "-q", "-b", "fairlane/t1")
    shutil.rmtree(attack.path)
    attack.path.symlink_to(attack.hostile.other)


def a_reference_out_of_a_secret(attack: Attack) -> None:
    reference = attack.dot / "refs" / "heads" / "fairlane" / "t1"
    reference.unlink()
    reference.symlink_to("/etc/passwd")


def words_for_a_reference(attack: Attack) -> None:
    (attack.dot / "refs" / "heads" / "fairlane" / "t1").write_text("--upload-pack=evil\n")


def another_head(attack: Attack) -> None:
    (attack.dot / "HEAD").write_text("ref: refs/heads/main\n")


def link(name: str) -> Trick:
    def trick(attack: Attack) -> None:
        theirs = attack.hostile.other / ".git" / name
        theirs.touch() if not theirs.exists() else None
        path = attack.dot / name
        if os.path.lexists(path):
            path.rename(attack.path.parent / "kept")
        path.symlink_to(theirs)

    trick.__name__ = f"link-{name.replace('/', '-')}"
    return trick


def pipe(name: str) -> Trick:
    def trick(attack: Attack) -> None:
        (attack.dot / name).unlink(missing_ok=True)
        os.mkfifo(attack.dot / name)

    trick.__name__ = f"pipe-{name.replace('/', '-')}"
    return trick


TRICKS: list[Trick] = [
    a_commit_of_another_repository, a_commit_that_is_not_there, a_file_named_git, a_gitdir_file,
    a_link_for_the_git_folder, a_link_for_the_clone, a_reference_out_of_a_secret,
    words_for_a_reference, another_head, link("objects"), link("refs"), link("config"),
    link("index"), link("HEAD"), link("packed-refs"), link("objects/info"), link("objects/pack"),
    pipe("config"), pipe("HEAD"), pipe("packed-refs"), pipe("index"),
    pipe("refs/heads/fairlane/t1"),
    pipe("objects/info/alternates"), pipe("objects/pack/pack-x.idx"), pipe("shallow"),
]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
def test_what_leads_elsewhere_is_refused(attack: Attack, trick: Trick) -> None:
    trick(attack)
    attack.hostile.before = attack.hostile.look()
    attack.assert_refused(str(attack.path), "hasDotgit" if trick is a_file_named_git else "")
    yard = attack.yard
    assert yard.log("main") == yard.log("fairlane/t1") == ["first"]
    assert git(yard.repo, "for-each-ref", "refs/fairlane/fetched") == ""
    kept = git(yard.repo, "for-each-ref", "--format=%(refname)", "refs/fairlane")
    assert kept == ("refs/fairlane/keep/t1/1" if trick is another_head else "")
    assert os.path.lexists(attack.path)


def test_programs_of_the_clone_do_not_run(attack: Attack, tmp_path: Path) -> None:
    names = (
        "core.fsmonitor", "core.hooksPath", "core.pager", "core.sshCommand", "core.editor",
        "core.alternateRefsCommand", "uploadpack.packObjectsHook", "gpg.program", "filter.x.clean",
        "filter.x.smudge", "diff.external", "merge.x.driver", "credential.helper",
        "core.worktree", "receive.fsck.skipList",
    )  # fmt: skip
    (attack.path / ".gitattributes").write_text("* merge=x diff=x\n")
    commit(attack.path, "by the agent")
    (attack.path / "rest").write_text("")
    for name in names:
        git(
            attack.path,
            "config",
            "--file",
            str(attack.dot / "config"),
            name,
            str(attack.hostile.program),
        )
    attack.hostile.hooks(attack.dot / "hooks")
    assert set(HOOKS) <= {path.name for path in (attack.dot / "hooks").iterdir()}
    assert attack.go_through() == ""
    attack.hostile.assert_harmless()
    assert {"rest", "t1"} <= set(attack.yard.files("main"))


@pytest.mark.parametrize("name", ["info/attributes", "info/exclude", "info/grafts"])
def test_the_clone_does_not_say_how_its_files_are_stored(attack: Attack, name: str) -> None:
    (attack.dot / "info").mkdir(exist_ok=True)
    (attack.dot / name).write_text("* filter=x\n")
    assert attack.go_through() == ""
    attack.hostile.assert_harmless()
    assert "t1" in attack.yard.files("main")


def test_a_branch_that_is_not_the_tasks_is_not_fetched(attack: Attack) -> None:
    commit(attack.path, "work")
    git(attack.path, "branch", "-f", "main", "HEAD")
    git(attack.path, "tag", "v1")
    git(attack.path, "update-ref", "refs/replace/" + "1" * 40, "HEAD")
    assert attack.yard.finish("t1") == ""
    assert attack.yard.branches() == ["fairlane/t1", "main"]
    assert attack.yard.log("main") == ["first"]
    assert (
        git(attack.yard.repo, "tag") == git(attack.yard.repo, "for-each-ref", "refs/replace") == ""
    )


def test_the_repository_cannot_be_reached_from_the_clone(attack: Attack) -> None:
    """All that a clone knows of the repository is where its objects are, and they are only read."""
    before = git(attack.yard.repo, "for-each-ref")
    commit(attack.path, "work")
    git(attack.path, "gc", "-q", "--prune=now")
    git(attack.path, "repack", "-q", "-a", "-d")
    assert git(attack.yard.repo, "for-each-ref") == before
    assert git(attack.yard.repo, "fsck") == ""
    assert attack.yard.finish(MERGING) == ""
    assert git(attack.yard.repo, "fsck") == ""
