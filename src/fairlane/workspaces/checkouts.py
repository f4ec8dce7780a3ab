"""Checkouts: which folder belongs to which repository, read from files before git runs there."""

from __future__ import annotations

import os
from pathlib import Path

from fairlane.model.errors import Refused
from fairlane.workspaces import config, git, plain_files
from fairlane.workspaces.plain_files import NotPlain, followed, line_of, real, shown

#: What git writes into a worktree's lock while it makes it.
BEING_MADE = "initializing"


class Unsafe(Refused):
    """A folder is not the workspace that it should be; `why` says what is wrong."""

    code = "unsafe_workspace"

    def __init__(self, path: Path, repo: git.Checkout, why: str, kind: str = "worktree") -> None:
        message = f"{path} is no {kind} of {repo.path}: {why}"
        super().__init__(message, "`fairlane workspaces` lists it; move it away to start anew.")
        self.why = why


def check_folder(path: Path) -> None:
    """A folder of ours is no link, and neither is the one above: it may lead to others' work."""
    for folder in (path.parent, path):
        if folder.is_symlink():
            raise NotPlain(f"{folder} is a link")


def worktree_at(repo: git.Checkout, path: Path) -> git.Checkout | None:
    """The worktree in one of our folders; None: there is none. Anything else is refused."""
    try:
        check_folder(path)
        if not path.is_dir() or not os.path.lexists(path / ".git"):
            return None
        return _linked(repo, path)
    except (NotPlain, OSError) as error:
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
            return repo.with_tree(folder, repo.common)
        return _linked(repo, folder)
    except (NotPlain, OSError) as error:
        raise Unsafe(folder, repo, str(error)) from error


def branches_out(repo: git.Checkout) -> dict[Path, str | None]:
    """Every checkout that the repository lists and that is there, with its branch."""
    branches: dict[Path, str | None] = {}
    blocks = git.run(repo, "worktree", "list", "--porcelain").split("\n\n")
    for number, block in enumerate(blocks):
        words = dict(line.partition(" ")[::2] for line in block.splitlines())
        folder = Path(words.get("worktree", ""))
        if number == 0:  # git guesses it from the git folder
            folder = repo.path if repo.own == repo.common else repo.common.parent
        if "bare" not in words and folder.is_dir():
            branch = words.get("branch")
            branches[folder.resolve()] = branch.removeprefix("refs/heads/") if branch else None
    return branches


def is_half_made(worktree: git.Checkout) -> bool:
    """Whether git was interrupted while it made this worktree."""
    try:
        return line_of(worktree.own / "locked") == BEING_MADE
    except (NotPlain, OSError):
        return False


def has_record(repo: git.Checkout, path: Path) -> bool:
    """Whether the repository knows a worktree in this folder."""
    for record in (repo.common / "worktrees").iterdir():
        try:
            if real(record / line_of(record / "gitdir")) == path.resolve() / ".git":
                return True
        except (NotPlain, OSError):
            continue
    return False


def _linked(repo: git.Checkout, path: Path) -> git.Checkout:
    """A worktree and its record name each other, and the record is one of this repository."""
    kind, _, target = line_of(path / ".git").partition(" ")
    if kind != "gitdir:" or not target:
        raise NotPlain(f"{path / '.git'} names no git folder")
    own = real(path / target)
    if own.parent != repo.common / "worktrees" or own.is_symlink() or not own.is_dir():
        raise NotPlain(f"its .git leads to {shown(own)}, which is no record of that repository")
    if real(own / line_of(own / "gitdir")) != path.resolve() / ".git":
        raise NotPlain(f"{own / 'gitdir'} names another folder")
    if followed(own / line_of(own / "commondir")) != repo.common:
        raise NotPlain(f"{own / 'commondir'} names another repository")
    plain_files.check(own)
    return repo.with_tree(path, own, config.of_worktree(own, path))
