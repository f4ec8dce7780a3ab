"""Commit: everything in a worktree, but for repositories inside it, which nobody runs git in."""

from __future__ import annotations

import os

from fairlane.model.errors import Refused
from fairlane.workspaces.git import Checkout, call, committer, git, names, shown

#: The mode by which git stores another repository's commit instead of files.
_LINK = "160000 "


def commit_all(at: Checkout, message: str) -> None:
    """Commit whatever is there, as whoever the repository names; never looks into submodules."""
    links = links_of(at)
    others = [f":(exclude,top,literal){each}" for each in links]
    git(at, "add", "-A", *(["--", ".", *others] if links else []))
    if links:
        git(at, "update-index", "--remove", "--", *links)
    words = ("commit", "--quiet", "--no-verify", "-m", message)
    git(at, *words, settings=committer(at))


def refuse_nested(at: Checkout, base: str | None) -> None:
    """Repositories that an agent made inside its worktree are named; their files would be lost."""
    untracked = names(at, "ls-files", "--others", "--exclude-standard", "-z")
    found = [each.rstrip("/") for each in untracked if each.endswith("/")]
    if links := links_of(at):
        known = _registered(at, base)
        found += [each for each in links if each not in known]
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        listed = ", ".join(map(shown, sorted(found)[:3]))
        raise Refused(
            f"{at.path} has repositories inside that cannot be committed: {listed}{more}",
            "Move them away or delete their .git, then `fairlane retry TASK`.",
            "nested",
        )


def links_of(at: Checkout) -> list[str]:
    """The submodules, and other repositories, that the index names."""
    return _paths(names(at, "ls-files", "--stage", "-z"))


def repositories_in(at: Checkout) -> list[str]:
    """Those of them that are checked out."""
    return [each for each in links_of(at) if os.path.lexists(at.path / each / ".git")]


def _registered(at: Checkout, base: str | None) -> frozenset[str]:
    """The submodules of the commit from which the work started."""
    start = call(at, "merge-base", base or "HEAD", "HEAD", code_ok=(0, 1, 128)).stdout.split()
    return frozenset(_paths(names(at, "ls-tree", "-r", "-z", start[0])) if start else ())


def _paths(lines: list[str]) -> list[str]:
    return [line.partition("\t")[2] for line in lines if line.startswith(_LINK)]
