"""Folder: where a task worked, verified before a person enters it; or a copy of what git keeps."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from fairlane.careful_files import make_folder
from fairlane.model.errors import NotFound, Refused
from fairlane.model.project import Project
from fairlane.model.record import replace
from fairlane.workspaces import checkouts, clone, git, plain_files, repository
from fairlane.workspaces.place import repo_of
from fairlane.workspaces.plain_files import NotPlain

#: Files that shells, editors and their extensions run or obey when somebody enters a folder.
RUNS_BY_ITSELF = frozenset(
    {
        ".envrc", ".autoenv", ".autoenv.zsh", ".mise.toml", "mise.toml", ".rtx.toml", ".exrc",
        ".nvimrc", ".nvim.lua", ".vimrc", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el",
        ".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".zed/tasks.json",
        ".zed/settings.json", ".devcontainer/devcontainer.json", ".devcontainer.json",
        ".idea/workspace.xml", ".mise/config.toml", ".config/mise.toml", ".direnvrc",
    }
)  # fmt: skip
#: Most entries that are looked at, and names that are told.
_ENTRIES_MAX, _NAMED_MAX = 200_000, 20


def check(home: Path, project: Project, path: Path, branch: str | None, head: str | None) -> None:
    """The folder is the workspace that it should be, or an error says what is wrong."""
    if project.repo is None:
        _check_plain(path)
        return
    repo = repo_of(home, project)
    if path == repo.path:
        return
    if not os.path.lexists(path):
        raise _gone(repo, path, branch, head)
    (clone if clone.is_clone(repo, path) else checkouts).verified(repo, path)


def runs_by_itself(path: Path) -> list[str]:
    """What could run when somebody enters the folder; names are text, fit for a message.

    The best known come first: others cannot hide them, be they many or behind a link.
    """
    known = [name for name in sorted(RUNS_BY_ITSELF) if os.path.lexists(path / name)]
    try:
        return [
            *known,
            *sorted(plain_files.shown(name) for name in islice(_found(path), _NAMED_MAX)),
        ]
    except NotPlain as error:
        return [*known, str(error)]


def _found(path: Path) -> Iterator[str]:
    if (path / ".git").is_dir():
        yield ".git"  # a clone: its agent wrote its configuration and hooks
    for entry in islice(plain_files.entries(path, skip=(".git",)), _ENTRIES_MAX):
        name = PurePosixPath(os.path.relpath(entry.path, path))
        is_project = len(name.parts) == 1 and name.suffix == ".code-workspace"
        if name.name == ".git" or is_project:
            yield str(name)


def _check_plain(path: Path) -> None:
    try:
        checkouts.check_folder(path)
    except NotPlain as error:
        raise Refused(str(error), "Move it away.", checkouts.Unsafe.code) from error
    if not path.is_dir():
        raise NotFound(f"{path} is gone", "Its task has no repository.", "no_work")


def _gone(repo: git.Checkout, path: Path, branch: str | None, head: str | None) -> NotFound:
    """The worktree was removed; its branch, or what git keeps, can be checked out again."""
    known = branch and git.commit_of(repo, f"refs/heads/{branch}")
    what = branch if known else head and git.commit_of(repo, head)
    if not what:
        return NotFound(f"{path} is gone, and so is its branch", code="no_work")
    detach = () if known else ("--detach",)
    words = ("git", "-C", str(repo.path), "worktree", "add", *detach, str(path), str(what))
    message = f"{path} was removed; its work is {f'on {branch}' if known else f'commit {what}'}"
    hint = f"`{shlex.join(words)}` brings it back; --fetch makes a copy."
    return NotFound(message, hint, "no_work")


def copy(home: Path, project: Project, task: str, head: str) -> Path:
    """A copy of a commit's files in `open/TASK`; one that is there stays as it is."""
    target = home / "open" / task
    if os.path.lexists(target):
        _check_plain(target)
        return target
    repo = repo_of(home, project)
    if git.commit_of(repo, head) is None:
        hint = "Its repository was replaced, or somebody removed refs/fairlane/keep."
        raise NotFound(f"{repo.path} does not have {head[:12]} any more", hint, "no_work")
    make_folder(target.parent)
    work = Path(tempfile.mkdtemp(prefix="copy.", dir=repository.folder_for(repo)))
    made = Path(tempfile.mkdtemp(prefix=f".{task}.", dir=target.parent))
    try:
        view = replace(repo, path=made, also=(("GIT_INDEX_FILE", str(work / "index")),))
        git.run(view, "read-tree", head)
        git.run(view, "checkout-index", "--all", "--quiet")
        made.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(made, ignore_errors=True)
    return target
