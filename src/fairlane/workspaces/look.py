"""Look: what can be told of a repository from its files, before any work; git is not called.

A quick word at `project add` and `add`. What cannot be told from files is left to the start of an
attempt, where git is asked with every care.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from fairlane.model.errors import Refused
from fairlane.model.names import OLD_NAME
from fairlane.workspaces.plain_files import NotPlain, bytes_of, followed, line_of

_BYTES_MAX = 1 << 20
_PACKED_BYTES_MAX = 1 << 24
_COMMIT = re.compile(r"[0-9a-f]{4,64}")
#: What makes a name more than the name of a branch or a tag.
_MORE = re.compile(r"[~^:@\\\[?*\x00-\x20\x7f]|\.\.")
#: The branch of a task may come later.
_OF_TASKS = ("fairlane/", f"{OLD_NAME}/")
#: Where git looks for a short name.
_PLACES = ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/")
_TRUE = ("true", "yes", "on", "1", "")


def refuse_unfit(folder: Path) -> None:
    """Refuse a repository in which no task could ever start: a bare one, and one without a commit.

    A folder that is no repository yet may become one.
    """
    if not os.path.lexists(folder / ".git"):
        if _is_git_folder(folder) and (folder / "HEAD").is_file():
            raise _bare(folder)
        return
    try:
        repo = _Folders(folder)
    except (NotPlain, OSError):
        return
    if repo.is_known and repo.is_bare():
        raise _bare(folder)
    if repo.is_known and repo.has(repo.head) is False:
        hint = f"`git -C {folder} commit --allow-empty -m first` makes one."
        raise Refused(f"{folder} has no commit yet", hint, "no_commit")


def refuse_base(folder: Path, base: str | None, merge: str, name: str) -> None:
    """Refuse a base that is not there, and a merge where there is no branch to merge into."""
    try:
        repo = _Folders(folder)
        if not repo.is_known:
            return
        if base is None:
            if merge == "merge" and not repo.head.startswith("ref: "):
                hint = f"Name a branch with --base, or: git -C {folder} switch BRANCH."
                message = f"{folder} is on no branch, so {name} has nothing to merge into"
                raise Refused(message, hint, "detached")
            return
        if base.startswith(_OF_TASKS) or base == "HEAD":
            return
        wanted = ("refs/heads/",) if merge == "merge" else _PLACES
        if merge == "merge" or not (_MORE.search(base) or _COMMIT.fullmatch(base)):
            known = [repo.has(f"ref: {place}{base}") for place in wanted]
            if not any(each is not False for each in known):
                hint = f"`git -C {folder} branch --all` lists branches; --base names one."
                raise Refused(f"{folder} has no branch {base!r}", hint, "unknown_base")
    except (NotPlain, OSError):
        return


def branch_at(folder: Path) -> str | None:
    """The branch that is checked out; None: none, or that cannot be told."""
    try:
        head = _Folders(folder).head
    except (NotPlain, OSError):
        return None
    place = "ref: refs/heads/"
    return head.removeprefix(place) if head.startswith(place) else None


class _Folders:
    """The git folders of a checkout, read from files."""

    def __init__(self, folder: Path) -> None:
        own = folder / ".git"
        if not own.is_dir():
            kind, _, target = line_of(own).partition(" ")
            if kind != "gitdir:":
                raise NotPlain("no git folder")
            own = followed(folder / target)
        self.own = self.common = own
        if os.path.lexists(own / "commondir"):
            self.common = followed(own / line_of(own / "commondir"))
        self.is_known = _is_git_folder(self.common) and not (self.common / "reftable").is_dir()
        self.head = line_of(own / "HEAD") if self.is_known else ""

    def is_bare(self) -> bool:
        """Whether it says that it has no work tree; one that is a worktree has."""
        if self.own != self.common or not os.path.lexists(self.common / "config"):
            return False
        section, bare = "", False
        for line in os.fsdecode(bytes_of(self.common / "config", _BYTES_MAX)).splitlines():
            text = line.strip()
            if text.startswith("["):
                section = text.strip("[]").lower()
            key, _, value = text.partition("=")
            if section == "core" and key.strip().lower() == "bare":
                bare = value.strip().lower() in _TRUE
        return bare

    def has(self, head: str) -> bool | None:
        """Whether a reference has a commit; None: that cannot be told."""
        if not head.startswith("ref: "):
            return True
        name = head.removeprefix("ref: ")
        if not name or ".." in name.split("/") or name.startswith("/") or "\0" in name:
            return False
        for folder in (self.own, self.common):
            path = folder / name
            if path.is_symlink():
                return None
            if path.is_file():
                return True
        packed = self.common / "packed-refs"
        if not os.path.lexists(packed):
            return False
        wanted = b" " + os.fsencode(name)
        return any(
            line.endswith(wanted) for line in bytes_of(packed, _PACKED_BYTES_MAX).splitlines()
        )


def _is_git_folder(folder: Path) -> bool:
    return (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _bare(folder: Path) -> Refused:
    hint = f"Agents need a checkout: `git clone {folder} DIR`, then --repo DIR."
    return Refused(f"{folder} is a bare repository", hint, "bare_repository")
