"""Tree: what lies in a work tree: changes, submodules, repositories that an agent made there."""

from __future__ import annotations

import os
from pathlib import Path

from fairlane.model.errors import Refused, listed
from fairlane.model.record import replace
from fairlane.workspaces import git, plain_files, submodules
from fairlane.workspaces.plain_files import NotPlain, shown

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


def renew_index(at: git.Checkout) -> None:
    """Take from an index that an agent wrote its entries alone: flags and times hide changes.

    Where the user has a sparse checkout, what is not there stays left out.
    """
    rows = git.execute(at.path, ("ls-files", "--stage", "-z"), at.environment).stdout
    left_out = _left_out(at) if git.configured(at, "core.sparsecheckout") == "true" else []
    new = at.own / "index.anew"
    env = replace(at, also=(*at.also, ("GIT_INDEX_FILE", str(new)))).environment
    try:
        new.unlink(missing_ok=True)
        git.execute(at.path, ("read-tree", "--empty"), env)
        git.execute(at.path, ("update-index", "-z", "--index-info"), env, given=rows)
        if left_out:
            words = ("update-index", "--skip-worktree", "-z", "--stdin")
            git.execute(at.path, words, env, given=os.fsencode("\0".join(left_out)))
        new.replace(at.own / "index")
    finally:
        new.unlink(missing_ok=True)


def _left_out(at: git.Checkout) -> list[str]:
    """What a sparse checkout leaves out, by the index and in the folder."""
    tagged = (row.partition(" ") for row in git.names(at, "ls-files", "-t", "-z"))
    return [name for tag, _, name in tagged if tag == "S" and not os.path.lexists(at.path / name)]


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
    """Repositories that an agent made inside its worktree are named; their files would be lost.

    So is work inside of submodules (`submodules.py`).
    """
    check_no_pipes(at)
    untracked = git.names(at, "ls-files", "--others", "--exclude-standard", "-z")
    nested = {name.rstrip("/") for name in untracked if name.endswith("/")}
    committed = submodules.links_in(at, "HEAD")
    links = {*links_of(at), *committed}
    started_with = registered(at, base) if links else {}
    nested |= links - started_with.keys()
    if links:
        moved = {link for link in committed if committed[link] != started_with.get(link)}
        nested |= {*moved, *repositories_in(at)} - submodules.declared(at)
    if nested:
        names = listed([shown(name) for name in sorted(nested)], 3)
        raise Refused(
            f"{at.path} has repositories inside that cannot be committed: {names}",
            "Move them away or delete their .git, then `fairlane retry TASK`.",
            "nested",
        )
    if links:
        submodules.refuse_changed(at, started_with)


def links_of(at: git.Checkout) -> list[str]:
    """The submodules, and other repositories, that the index names."""
    return _paths(git.names(at, "ls-files", "--stage", "-z"))


def repositories_in(at: git.Checkout) -> list[str]:
    """Those of them that are checked out."""
    return [link for link in links_of(at) if os.path.lexists(at.path / link / ".git")]


def registered(at: git.Checkout, base: str | None) -> dict[str, str]:
    """The submodules of the commit from which the work started, with the commit of each."""
    start = git.call(at, "merge-base", base or "HEAD", "HEAD", code_ok=(0, 1, 128)).stdout.split()
    return submodules.links_in(at, start[0]) if start else {}


def _paths(lines: list[str]) -> list[str]:
    return [line.partition("\t")[2] for line in lines if line.startswith(submodules.LINK)]
