"""Tricks with git: everything that could make another git run a program or write elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.attackers.tricks.scene import Scene, append, away, fifo, huge, link, put, setting


def quiet_git(at: Scene, *words: str, folder: Path | None = None) -> str:
    """Git as the agent calls it, for itself."""
    author = {
        f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", "-c", "advice.addEmbeddedRepo=false", *words],
        cwd=folder or at.work, env=dict(os.environ) | author, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout.strip()


def nested(at: Scene, where: str = "sub") -> Path:
    """A repository inside the work tree; its git folder."""
    folder = at.work / where
    if not folder.exists():
        folder.mkdir(parents=True)
        quiet_git(at, "init", "-q", folder=folder)
        put(folder / "file", "x\n")
        quiet_git(at, "add", "file", folder=folder)
        quiet_git(at, "commit", "-q", "-m", "x", folder=folder)
    return folder / ".git"


def config_at(at: Scene, place: str) -> Path:
    """The file into which settings are written, and the one that leads git there."""
    if place == "common":
        return at.common / "config"
    if place == "worktree":
        append(at.common / "config", setting("extensions.worktreeConfig", "true"))
        return at.own / "config.worktree"
    if place == "include":
        append(at.common / "config", setting("include.path", str(at.work / "included")))
        return at.work / "included"
    if place == "onbranch":
        append(
            at.common / "config", setting("includeIf.onbranch:**.path", str(at.work / "by-branch"))
        )
        return at.work / "by-branch"
    if place == "gitdir":
        append(
            at.common / "config", setting("includeIf.gitdir:/**.path", str(at.work / "by-folder"))
        )
        return at.work / "by-folder"
    if place == "nested":
        return nested(at) / "config"
    assert place == "replaced", place
    if (at.work / ".git").is_file():
        (at.work / ".git").unlink()
        quiet_git(at, "init", "-q", "-b", f"fairlane/{at.task}")
        quiet_git(at, "commit", "-q", "--allow-empty", "-m", "x")
    return at.work / ".git" / "config"


def hook_at(at: Scene, place: str, name: str) -> None:
    """A hook of this name in one of the places where git looks, or is told to look."""
    if place == "common":
        at.hook(at.common / "hooks", name)
    elif place == "own":
        at.hook(at.own / "hooks", name)
    else:
        folder = at.work / f"hooks-{place}"
        config = config_at(at, place)
        if not folder.exists():
            append(config, setting("core.hooksPath", str(folder)))
        at.hook(folder, name)
        if place in ("nested", "replaced"):
            at.hook(config.parent / "hooks", name)


def setting_at(at: Scene, place: str, key: str, value: str = "") -> None:
    """A setting that names a program, or brings another one to run a program."""
    append(config_at(at, place), setting(key, value.replace("PROGRAM", at.program) or at.program))


def attributes(at: Scene, where: str, line: str) -> None:
    """Attributes that send every file through a driver of the configuration."""
    if where == "info":
        append(at.common / "info" / "attributes", line + "\n")
    elif where == "tree":
        append(at.work / ".gitattributes", line + "\n")
    else:
        append(at.work / "attributes-elsewhere", line + "\n")
        path = str(at.work / "attributes-elsewhere")
        append(at.common / "config", setting("core.attributesFile", path))
    put(at.work / "text", "through the driver\n")


def driver(at: Scene, kind: str, where: str) -> None:
    """A filter, diff or merge driver, and attributes that ask for it."""
    sort, _, last = kind.partition(".")
    append(at.common / "config", setting(f"{sort}.{where}.{last}", at.program))
    attributes(at, where, f"* {sort}={where}")


def gitdir_file(at: Scene, text: str) -> None:
    """Another text in the `.git` file of the work tree."""
    fields = {"other": at.other, "own": at.own, "user": at.user, "repo": at.repo}
    put(at.work / ".git", text.format(**fields))


def gitdir_bytes(at: Scene, kind: str) -> None:
    """Something else than a small text as the `.git` of the work tree."""
    path, own = at.work / ".git", at.own
    if kind == "fifo":
        fifo(path)
    elif kind == "huge":
        huge(path)
    elif kind == "binary":
        put(path, b"gitdir: \xff\x00\n")
    elif kind == "long":
        put(path, f"gitdir: {own}\n" + " \n" * 100_000)
    elif kind == "none":
        away(path)
    elif kind == "link":
        link(path, at.other / ".git")
    elif kind == "folder":
        away(path)
        path.mkdir()
    elif kind == "copy":
        away(path)
        shutil.copytree(at.repo / ".git", path)
        append(path / "config", setting("core.fsmonitor", at.program))
    elif kind == "bare":
        away(path)
        quiet_git(at, "init", "-q", "--bare", ".git")
        append(path / "config", setting("core.fsmonitor", at.program))


def work_tree(at: Scene, kind: str) -> None:
    """Something else in the place of the work tree itself."""
    os.chdir("/")
    if kind == "link":
        shutil.rmtree(at.work)
        at.work.symlink_to(at.other)
    elif kind == "dangling":
        shutil.rmtree(at.work)
        at.work.symlink_to(at.nowhere)
    elif kind == "file":
        shutil.rmtree(at.work)
        at.work.write_text("no folder\n")
    elif kind == "fifo":
        shutil.rmtree(at.work)
        os.mkfifo(at.work)
    elif kind == "gone":
        shutil.rmtree(at.work)
    elif kind == "moved":
        moved = at.work.parent.parent / f"moved-{at.name}"
        at.work.parent.rename(moved)
        at.work.parent.symlink_to(moved)
    elif kind == "locked":
        at.work.chmod(0)


def git_file(at: Scene, where: str, name: str, kind: str) -> None:
    """A file of the git folder becomes a link, a pipe, something huge, or says something else."""
    path = (at.own if where == "own" else at.common) / name
    if kind == "link":
        link(path, at.victim)
    elif kind == "dangling":
        link(path, at.nowhere)
    elif kind == "fifo":
        fifo(path)
    elif kind == "huge":
        huge(path)
    elif kind == "other":
        link(path, at.other / ".git" / name)
    else:
        fields = {"other": at.other, "work": at.work, "victim": at.victim, "task": at.task}
        put(path, kind.format(**fields))


def git_folder(at: Scene, where: str, name: str) -> None:
    """A folder of the git folder becomes a link to that of another repository."""
    path = (at.own if where == "own" else at.common) / name
    target = at.other / ".git" / name
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(path.name + "-kept"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def made_up_record(at: Scene, kind: str) -> None:
    """A record of a worktree that is none: git lists it, prunes it, and goes there."""
    record = at.common / "worktrees" / "made-up"
    if kind == "link":
        record.parent.mkdir(exist_ok=True)
        record.symlink_to(at.user / "documents")
        return
    put(record / "HEAD", "ref: refs/heads/main\n")
    put(record / "commondir", f"{at.other}/.git\n" if kind == "commondir" else "../..\n")
    put(record / "gitdir", f"{at.other}/.git\n")
    if kind == "locked":
        put(record / "locked", "initializing")


def head_at(at: Scene, text: str) -> None:
    """The work tree claims to be on another branch."""
    put(at.own / "HEAD", text)


def branch_at(at: Scene, text: str) -> None:
    """The task's branch is a reference to something else."""
    put(at.common / "refs" / "heads" / "fairlane" / at.task, text)


def stolen_commit(at: Scene) -> None:
    """Objects of another repository as one's own, and the branch at its newest commit."""
    commit = (at.other / ".git" / "refs" / "heads" / "main").read_text()
    put(at.common / "objects" / "info" / "alternates", f"{at.other}/.git/objects\n")
    branch = at.common / "refs" / "heads" / "fairlane" / at.task
    put(branch, commit)
    put(at.artifacts / "stolen", commit)


def nested_repository(at: Scene, kind: str) -> None:
    """Another repository inside the work tree, with a monitor that must not run."""
    where = "a/b/sub" if kind == "deep" else "sub"
    folder = nested(at, where)
    append(folder / "config", setting("core.fsmonitor", at.program))
    if kind in ("added", "committed"):
        quiet_git(at, "add", where)
    if kind == "committed":
        quiet_git(at, "commit", "-q", "-m", "a gitlink")
    if kind == "absorbed":
        put(at.work / ".gitmodules", f'[submodule "sub"]\n\tpath = sub\n\turl = {at.other}\n')
        target = at.common / "modules" / "sub"
        target.parent.mkdir(exist_ok=True)
        folder.rename(target)
        put(folder, f"gitdir: {target}\n")
        quiet_git(at, "add", ".gitmodules", "sub")
        quiet_git(at, "commit", "-q", "-m", "a submodule")
    if kind == "file":
        shutil.rmtree(folder)
        put(folder, f"gitdir: {at.other}/.git\n")
    if kind == "bare":
        shutil.rmtree(at.work / "sub")
        quiet_git(at, "init", "-q", "--bare", "sub")
        append(at.work / "sub" / "config", setting("core.fsmonitor", at.program))


def hostile_names(at: Scene) -> None:
    """File names that mislead a terminal or a command line."""
    for name in ("\x1b[2J", "new\nline", "\u202egnp.exe", "-rf", "--upload-pack=x", "\udcff"):
        put(at.work / name, "x")


def deep_tree(at: Scene) -> None:
    """A file far down."""
    put(at.work.joinpath(*(f"d{number}" for number in range(150))) / "file", "x")


def tree_with_git_inside(at: Scene) -> None:
    """A commit whose tree has an entry `.git`."""
    blob = quiet_git(at, "hash-object", "-w", "work")
    words, entry = ["git", "mktree"], f"100644 blob {blob}\t.git\n"
    done = subprocess.run(words, input=entry, capture_output=True, text=True, check=True)
    commit = quiet_git(at, "commit-tree", done.stdout.strip(), "-m", "x")
    put(at.common / "refs" / "heads" / "fairlane" / at.task, commit + "\n")


def links_outside(at: Scene) -> None:
    """Links that lead out of the work tree."""
    link(at.work / "out", at.user)
    link(at.work / "up", Path("../../../.."))


def special_files(at: Scene, kind: str) -> None:
    """Files that git reads by itself become pipes, links or far too large."""
    for name in (".gitattributes", ".gitignore", ".gitmodules", ".mailmap", "pipe"):
        if kind == "fifo":
            fifo(at.work / name)
        elif kind == "links":
            link(at.work / name, at.victim)
        elif name in (".gitattributes", ".gitignore"):
            huge(at.work / name)


def missing_objects(at: Scene) -> None:
    """A branch at a commit that nobody has, and a remote that would be asked for it."""
    for key, value in (
        ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "evil"),
        ("remote.evil.promisor", "true"), ("remote.evil.url", f"ext::{at.program}"),
        ("protocol.ext.allow", "always"), ("protocol.allow", "always"),
    ):  # fmt: skip
        append(at.common / "config", setting(key, value))
    branch_at(at, "1" * 40 + "\n")
