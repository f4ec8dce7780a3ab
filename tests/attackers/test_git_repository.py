"""An agent rewrites the project's own git folder: git is not started, and the file is named."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane.model.errors import FairlaneError
from fairlane.model.task import Task
from fairlane.workspaces import git as ours
from tests.attackers import git_ground
from tests.attackers.git_ground import MERGING, MODES, Attack
from tests.workspaces.hostile import Hostile
from tests.workspaces.yard import Yard, commit, git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(100)]  # below the time limit of one git
hostile, yard = git_ground.hostile, git_ground.yard

Trick = Callable[[Attack], object]


def link(name: str) -> Trick:
    """The same entry of the other repository, in place of the project's."""

    def trick(attack: Attack) -> None:
        theirs = attack.hostile.other / ".git" / name
        if not theirs.exists():
            theirs.touch()
        if os.path.lexists(attack.common / name):
            (attack.common / name).rename(attack.common / "kept")
        (attack.common / name).symlink_to(theirs)

    trick.__name__ = f"link-{name.replace('/', '-')}"
    return trick


def pipe(name: str) -> Trick:
    """A pipe, at which git would wait for ever."""

    def trick(attack: Attack) -> None:
        path = attack.common / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    trick.__name__ = f"pipe-{name.replace('/', '-')}"
    return trick


def a_gitdir_file(attack: Attack) -> None:
    attack.common.rename(attack.yard.repo / "kept")
    attack.common.write_text(f"gitdir: {attack.hostile.other}/.git\n")


def a_link_for_the_git_folder(attack: Attack) -> None:
    attack.common.rename(attack.yard.repo / "kept")
    attack.common.symlink_to(attack.hostile.other / ".git")


def a_link_for_the_repository(attack: Attack) -> None:
    attack.yard.repo.rename(attack.yard.repo.parent / "moved")
    attack.yard.repo.symlink_to(attack.hostile.other)


def a_common_folder(attack: Attack) -> None:
    (attack.common / "commondir").write_text(f"{attack.hostile.other}/.git\n")


def objects_of_another(attack: Attack) -> None:
    alternates = attack.common / "objects" / "info" / "alternates"
    alternates.write_text(f"{attack.hostile.other}/.git/objects\n")


def a_huge_configuration(attack: Attack) -> None:
    (attack.common / "config").write_text("# much\n" * 200_000)


MAIN: list[Trick] = [
    link("refs/heads"), link("objects"), link("config"), a_gitdir_file, a_link_for_the_repository,
    objects_of_another, pipe("config"),
]  # fmt: skip
MORE: list[Trick] = [
    link("refs"), link("HEAD"), link("packed-refs"), link("info"), link("logs"), link("worktrees"),
    link("objects/pack"), link("objects/info"), pipe("packed-refs"), pipe("HEAD"),
    pipe("info/attributes"), pipe("info/exclude"), pipe("refs/heads/fairlane/x"),
    pipe("objects/info/alternates"), pipe("objects/pack/pack-x.idx"), pipe("worktrees/x/HEAD"),
    a_link_for_the_git_folder, a_common_folder, a_huge_configuration,
]  # fmt: skip
CASES = [(mode, trick) for mode in MODES for trick in MAIN]
CASES += [("worktree", trick) for trick in MORE]


@pytest.mark.parametrize(
    ("mode", "trick"), CASES, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_git_folder_that_leads_elsewhere_is_refused(
    hostile: Hostile, mode: str, trick: Trick
) -> None:
    attack = Attack(hostile, mode)
    trick(attack)
    hostile.before = hostile.look()
    files = everything(hostile.other)
    attack.assert_refused(str(attack.yard.repo))
    assert everything(hostile.other) == files
    row = attack.yard.leftovers().get("w1" if mode == "pool" else "t1")
    assert mode == "shared" or (row is not None and row.keep)
    for task in ("t1", "t2"):
        with pytest.raises(FairlaneError):
            attack.yard.prepare(task, attack.workspace)


def everything(folder: Path) -> dict[str, bytes]:
    """Every file, those of git too; looking refreshes an index."""
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "index"
    }


def test_the_next_attempts_of_other_repositories_go_on(hostile: Hostile, tmp_path: Path) -> None:
    attack = Attack(hostile, "worktree")
    a_gitdir_file(attack)
    attack.assert_refused("leads to")
    yard = attack.yard
    yard.change(name="other", repo=str(hostile.other))
    yard.work("t9")
    assert yard.finish("t9") == ""


def test_a_person_who_moved_the_git_folder_says_so(yard: Yard, tmp_path: Path) -> None:
    from fairlane import workspaces

    yard.work(MERGING)
    shutil.move(yard.repo / ".git", tmp_path / "elsewhere")
    (yard.repo / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    problem = yard.finish(MERGING)
    assert f"{yard.repo / '.git'} leads to {tmp_path / 'elsewhere'} now" in problem
    assert f"`fairlane project set PROJECT --repo {yard.repo}` accepts it" in problem
    workspaces.forget(yard.home, yard.repo)
    yard.prepare("t2")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("where", ["config", "config.worktree", "include", "home"])
def test_no_setting_of_the_repository_names_a_program(
    hostile: Hostile, mode: str, where: str, tmp_path: Path
) -> None:
    """Every setting that git knows to run, at once, wherever an agent can write it."""
    attack = Attack(hostile, mode)
    lines = "".join(_setting(name, str(hostile.program)) for name in PROGRAMS)
    target = attack.common / ("config.worktree" if where == "config.worktree" else "config")
    if where == "include":
        (tmp_path / "included").write_text(lines)
        lines = f"[include]\n\tpath = {tmp_path / 'included'}\n"
    if where == "config.worktree":
        git(attack.yard.repo, "config", "extensions.worktreeConfig", "true")
    if where == "home":  # a copy of our view, with another configuration
        for view in (attack.yard.home / "git").glob("*/view/config"):
            view.write_text(lines)
    else:
        target.write_text((target.read_text() if target.exists() else "") + lines)
    hostile.hooks(attack.common / "hooks")
    problem = attack.go_through()
    assert problem == "" or "filter" in problem
    assert not hostile.witness.exists()


PROGRAMS = (
    "core.hooksPath", "core.fsmonitor", "core.pager", "core.editor", "core.askPass",
    "core.sshCommand", "core.gitProxy", "core.alternateRefsCommand", "sequence.editor",
    "credential.helper", "credential.x.helper", "diff.external", "diff.x.command",
    "diff.x.textconv", "difftool.x.cmd", "mergetool.x.cmd", "merge.x.driver", "gpg.program",
    "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "gpg.x509.program", "pager.status",
    "pager.commit", "alias.status", "alias.commit", "uploadpack.packObjectsHook",
    "receive.procReceiveRefs", "remote.x.uploadpack", "remote.x.receivepack", "remote.x.vcs",
    "trailer.x.command", "trailer.x.cmd", "hook.x.command", "gc.recentObjectsHook",
    "submodule.x.update", "interactive.diffFilter", "sendemail.smtpServer", "web.browser",
    "browser.x.cmd", "man.x.cmd", "instaweb.httpd", "imap.tunnel", "lfs.x.path",
    "lfs.standalonetransferagent", "lfs.customtransfer.x.path", "guitool.x.cmd",
    "core.worktree", "init.templateDir", "commit.template", "include.path",
)  # fmt: skip


def _setting(name: str, value: str) -> str:
    section, _, rest = name.partition(".")
    within, _, key = rest.rpartition(".")
    head = f'[{section} "{within}"]' if within else f"[{section}]"
    return f"{head}\n\t{key} = {value}\n"


def test_an_object_that_is_replaced_does_not_count(hostile: Hostile) -> None:
    """`refs/replace` would make git see another commit in place of the one that is merged."""
    attack = Attack(hostile, "worktree")
    mine = commit(attack.path, "harmless")
    (attack.path / "evil").write_text("")
    evil = commit(attack.path, "evil")
    git(attack.path, "reset", "-q", "--hard", mine)
    git(attack.path, "replace", mine, evil)
    assert attack.yard.finish(MERGING) == ""
    assert not (attack.yard.repo / "evil").exists()
    assert git(attack.yard.repo, "rev-parse", "main") == mine


def test_the_branch_to_merge_into_is_not_the_agents_choice(hostile: Hostile) -> None:
    attack = Attack(hostile, "worktree")
    git(attack.yard.repo, "branch", "production")
    git(attack.yard.repo, "config", "branch.fairlane/t1.fairlane-base", "production")
    assert attack.yard.finish(MERGING) == ""
    assert attack.yard.log("production") == ["first"]
    assert attack.yard.log("main") == ["t1", "first"]


def test_a_lock_that_nobody_gives_back_has_a_limit(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.work(MERGING)
    (lock,) = (yard.home / "locks").iterdir()
    monkeypatch.setattr(ours, "LOCK_SECONDS_MAX", 0.1)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert f"another process has held {lock}" in yard.finish(MERGING)
    assert yard.finish(MERGING) == ""


@pytest.mark.parametrize("mode", ["worktree", "clone"])
@pytest.mark.parametrize(
    "name", [".gitattributes", "src/.gitignore", "n/.git/HEAD", "n/.git/config"]
)
def test_a_pipe_in_the_work_tree_is_named_and_not_waited_for(
    hostile: Hostile, mode: str, name: str
) -> None:
    attack = Attack(hostile, mode)
    if name.startswith("n/"):
        git(attack.path, "init", "-q", "n")
        (attack.path / name).unlink()
    os.mkfifo(attack.path / name)
    attack.assert_refused(f"{attack.path / name} is a pipe or a device")
    assert (attack.path / "t1").exists()
    assert attack.yard.log("main") == ["first"]


@pytest.mark.parametrize("mode", ["worktree", "clone"])
@pytest.mark.parametrize("added", ["no", "index", "commit"])
def test_a_repository_inside_is_named(hostile: Hostile, mode: str, added: str) -> None:
    attack = Attack(hostile, mode)
    shutil.copytree(hostile.other, attack.path / "sub")
    git(attack.path / "sub", "config", "core.fsmonitor", str(hostile.program))
    if added != "no":
        git(attack.path, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
    if added == "commit":
        git(attack.path, "commit", "-q", "-m", "a gitlink")
    hostile.witness.unlink(missing_ok=True)
    attack.assert_refused("repositories inside that cannot be committed: sub")
    assert attack.yard.log("main") == ["first"]
    assert (attack.path / "sub" / "README").exists()


HOOK = 'echo "$0" >> "{marks}"\n'


@pytest.mark.parametrize("mode", ["worktree", "pool", "clone"])
def test_hooks_run_where_the_user_wants_the_repositorys_own(
    yard: Yard, tmp_path: Path, mode: str
) -> None:
    marks = tmp_path / "marks"
    for name in ("pre-commit", "commit-msg", "post-commit"):
        hook = yard.repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\n" + HOOK.format(marks=marks))
        hook.chmod(0o755)
    yard.workspaces(mode=mode)
    named = "w1" if mode == "pool" else None
    yard.change(workspaces=("w1",) if mode == "pool" else None)
    yard.work("t1", workspace=named)
    assert yard.finish("t1", named) == ""
    assert not marks.exists()
    yard.change(hooks="repo")
    yard.work("t2", workspace=named)
    assert yard.finish("t2", named) == ""
    ran = [Path(line).name for line in marks.read_text().split()]
    assert ran == ["pre-commit", "commit-msg", "post-commit"]
    (yard.repo / ".git" / "hooks" / "pre-commit").write_text(
        "#!/bin/sh\necho too long >&2; exit 1\n"
    )
    yard.work(Task("t3"), workspace=named)
    assert "too long" in yard.finish("t3", named)
    assert yard.log("fairlane/t3") == ["first"]
