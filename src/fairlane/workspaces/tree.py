"""Tree: what lies in a work tree: changes, submodules, repositories that an agent made there."""

from __future__ import annotations

import os
from pathlib import Path

from fairlane.model.errors import Refused, listed
from fairlane.workspaces import git, plain_files
from fairlane.workspaces.plain_files import NotPlain, shown

#: The mode by which git stores another repository's commit instead of files.
_LINK = "160000 "
#: Files of a work tree that git opens, whatever they are.
_OPENED = frozenset({".gitattributes", ".gitignore", ".gitmodules"})


def is_dirty(at: git.Checkout) -> bool:
    """Whether anything is not committed; what is ignored, and inside submodules, does not count."""
    check_no_pipes(at)
    words = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
    return bool(git.run(at, "status", *words))


def check_no_pipes(at: git.Checkout) -> None:
    """Git would wait for ever at a pipe in place of a file that it opens."""
    try:
        for entry in plain_files.entries(at.path, skip=(".git",)):
            if entry.name == ".git" and entry.is_dir(follow_symlinks=False):
                plain_files.check_no_pipes(Path(entry.path))
            elif (entry.name in _OPENED or entry.name == ".git") and plain_files.is_device(entry):
                raise NotPlain(f"{shown(entry.path)} is a pipe or a device")
    except NotPlain as error:
        hint = "Remove it, then `fairlane retry TASK`."
        raise Refused(f"{at.path} cannot be read by git: {error}", hint, "pipe") from error


def commit_all(at: git.Checkout, message: str) -> None:
    """Commit everything as the repository's user; never look into submodules."""
    links = links_of(at)
    others = [f":(exclude,top,literal){link}" for link in links]
    git.run(at, "add", "-A", *(["--", ".", *others] if links else []))
    if links:
        git.run(at, "update-index", "--remove", "--", *links)
    verify = () if at.hooks else ("--no-verify",)
    git.run(at, "commit", "--quiet", *verify, "-m", message, settings=git.committer(at))


def refuse_nested(at: git.Checkout, base: str | None) -> None:
    """Repositories that an agent made inside its worktree are named; their files would be lost."""
    check_no_pipes(at)
    untracked = git.names(at, "ls-files", "--others", "--exclude-standard", "-z")
    nested = {name.rstrip("/") for name in untracked if name.endswith("/")}
    links = {*links_of(at), *_paths(git.names(at, "ls-tree", "-r", "-z", "HEAD"))}
    if links:
        nested |= links - _registered(at, base)
    if nested:
        names = listed([shown(name) for name in sorted(nested)], 3)
        raise Refused(
            f"{at.path} has repositories inside that cannot be committed: {names}",
            "Move them away or delete their .git, then `fairlane retry TASK`.",
            "nested",
        )


def links_of(at: git.Checkout) -> list[str]:
    """The submodules, and other repositories, that the index names."""
    return _paths(git.names(at, "ls-files", "--stage", "-z"))


def repositories_in(at: git.Checkout) -> list[str]:
    """Those of them that are checked out."""
    return [link for link in links_of(at) if os.path.lexists(at.path / link / ".git")]


def _registered(at: git.Checkout, base: str | None) -> frozenset[str]:
    """The submodules of the commit from which the work started."""
    start = git.call(at, "merge-base", base or "HEAD", "HEAD", code_ok=(0, 1, 128)).stdout.split()
    return frozenset(_paths(git.names(at, "ls-tree", "-r", "-z", start[0])) if start else ())


def _paths(lines: list[str]) -> list[str]:
    return [line.partition("\t")[2] for line in lines if line.startswith(_LINK)]
