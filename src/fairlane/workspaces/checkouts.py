"""Checkouts: which folder belongs to which repository, read from files before git runs there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fairlane.model.errors import Refused
from fairlane.workspaces import git

#: A file that leads git elsewhere holds one path.
_BYTES_MAX = 8192
#: What git writes into a worktree's lock while it makes it.
BEING_MADE = "initializing"


class Unsafe(Refused):
    """A folder is not the worktree that it should be; `why` says what is wrong."""

    code = "unsafe_workspace"

    def __init__(self, path: Path, repo: git.Checkout, why: str) -> None:
        message = f"{path} is no worktree of {repo.path}: {why}"
        super().__init__(message, "`fairlane workspaces` lists it; move it away to start anew.")
        self.why = why


class _Wrong(Exception):
    """What is wrong with a folder."""


def worktree_at(repo: git.Checkout, path: Path) -> git.Checkout | None:
    """The worktree in one of our folders; None: there is none. Anything else is refused."""
    try:
        for folder in (path.parent, path):
            if folder.is_symlink():
                raise _Wrong(f"{folder} is a link")  # it may lead to the work of somebody else
        if not path.is_dir() or not os.path.lexists(path / ".git"):
            return None
        return _linked(repo, path)
    except (_Wrong, OSError) as error:
        raise Unsafe(path, repo, str(error)) from error


def verified(repo: git.Checkout, path: Path) -> git.Checkout:
    """The worktree in one of our folders, or an error that says what is wrong with it."""
    worktree = worktree_at(repo, path)
    if worktree is None:
        raise Unsafe(path, repo, "it has no .git" if path.is_dir() else "it is not there")
    return worktree


def checkout_at(repo: git.Checkout, folder: Path) -> git.Checkout:
    """A checkout of the repository, by its list of them; agents can write that list."""
    if folder == repo.path:
        return repo
    try:
        if (folder / ".git").is_dir() and (folder / ".git").resolve() == repo.common:
            return git.Checkout(folder, repo.common, repo.common)
        return _linked(repo, folder)
    except (_Wrong, OSError) as error:
        raise Unsafe(folder, repo, str(error)) from error


def branches_out(repo: git.Checkout) -> dict[Path, str | None]:
    """Every checkout that the repository lists and that is there, with its branch."""
    branches: dict[Path, str | None] = {}
    blocks = git.run(repo, "worktree", "list", "--porcelain").split("\n\n")
    for number, block in enumerate(blocks):
        words = dict(line.partition(" ")[::2] for line in block.splitlines())
        folder = Path(words.get("worktree", ""))
        if number == 0 and repo.own == repo.common:
            folder = repo.path  # git guesses it from the git folder, which may be elsewhere
        if "bare" not in words and folder.is_dir():
            branch = words.get("branch")
            branches[folder.resolve()] = branch.removeprefix("refs/heads/") if branch else None
    return branches


def check_records(repo: git.Checkout) -> None:
    """Git removes what the records of worktrees lead to: none may be a link."""
    folder = repo.common / "worktrees"
    records = sorted(folder.iterdir()) if folder.is_dir() else []
    for record in (folder, *records):
        if record.is_symlink():
            raise _link(record)


def check_branch(repo: git.Checkout, branch: str) -> None:
    """Nothing of a branch of ours is written through a link."""
    for top in (repo.common / "refs" / "heads", repo.common / "logs" / "refs" / "heads"):
        path = top
        for part in branch.split("/"):
            path /= part
            if path.is_symlink():
                raise _link(path)


def _link(path: Path) -> Refused:
    name = git.shown(str(path))
    return Refused(f"{name} is a link", f"`rm {name}` takes the link away.", Unsafe.code)


def is_half_made(worktree: git.Checkout) -> bool:
    """Whether git was interrupted while it made this worktree."""
    try:
        return _line(worktree.own / "locked") == BEING_MADE
    except (_Wrong, OSError):
        return False


def _linked(repo: git.Checkout, path: Path) -> git.Checkout:
    """A worktree and its record name each other, and the record is one of this repository."""
    kind, _, target = _line(path / ".git").partition(" ")
    if kind != "gitdir:" or not target:
        raise _Wrong(f"{path / '.git'} names no git folder")
    own = _real(path / target)
    if own.parent != repo.common / "worktrees" or own.is_symlink() or not own.is_dir():
        raise _Wrong(
            f"its .git leads to {git.shown(str(own))}, which is no record of that repository"
        )
    if _real(own / _line(own / "gitdir")) != path.resolve() / ".git":
        raise _Wrong(f"{own / 'gitdir'} names another folder")
    if (own / _line(own / "commondir")).resolve() != repo.common:
        raise _Wrong(f"{own / 'commondir'} names another repository")
    _check_no_links(own)
    return git.Checkout(path, own, repo.common)


def _check_no_links(own: Path) -> None:
    """Git would write its index, for instance, through a link; submodules are not ours."""
    for folder, folders, files in os.walk(own):
        for name in (*folders, *files):
            if (path := Path(folder) / name).is_symlink():
                raise _Wrong(f"{git.shown(str(path))} is a link")
        folders[:] = [name for name in folders if name != "modules"]


def _real(path: Path) -> Path:
    """A path with every link on the way to it followed, but not itself."""
    return path.parent.resolve() / path.name


def _line(path: Path) -> str:
    """What a small ordinary file says, without its line's end; a pipe or a link is none."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _Wrong(f"{path} cannot be read: {error.strerror}") from error
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _BYTES_MAX:
            raise _Wrong(f"{path} is not a small file")
        text = os.fsdecode(os.read(number, _BYTES_MAX)).rstrip("\r\n")
    finally:
        os.close(number)
    if "\0" in text or "\n" in text:
        raise _Wrong(f"{path} does not hold one line")
    return text
