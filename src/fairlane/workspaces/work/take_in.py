"""Take in: what a task's agent left becomes commits of its branch, which the repository has."""

from __future__ import annotations

from pathlib import Path

from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces import checkouts, clone, git, tree
from fairlane.workspaces.place import Place, check_branch
from fairlane.workspaces.plain_files import NotPlain


def take_in(home: Path, settings: Settings, place: Place, task: Task) -> git.Checkout:
    """After a success: fetch from a clone, commit the rest; the task's work tree, on its branch."""
    assert place.repo is not None
    assert place.branch is not None
    at = _taken_in(home, place, place.repo, place.branch)
    if settings.workspaces.commit == "rest":
        _commit_rest(place, at, git.commit_of(place.repo, place.base or "HEAD"), task)
    return at


def _taken_in(home: Path, place: Place, repo: git.Checkout, branch: str) -> git.Checkout:
    """The task's work tree, on its branch, which the repository has: nothing else is written."""
    if place.mode != "clone":
        worktree = checkouts.verified(repo, place.path)
        check_branch(place, git.branch_of(worktree))
        tree.renew_index(worktree)
        return worktree
    at = clone.verified(repo, place.path)
    try:
        check_branch(place, clone.branch_of(place.path))
        check_branch(place, git.branch_of(at))  # in the repository it can lead to another one
    except NotPlain as error:
        raise checkouts.Unsafe(place.path, repo, str(error), "clone") from error
    with git.one_at_a_time(home, repo):
        clone.fetch(at, repo, branch)
    return at


def _commit_rest(place: Place, at: git.Checkout, base: str | None, task: Task) -> None:
    tree.refuse_nested(at, base)
    if not tree.is_dirty(at):
        return
    first = (task.title or task.prompt.strip().split("\n")[0] or task.id)[:72]
    tree.commit_all(at, f"{first}\n\nTask: {task.id}\n")
    if place.mode == "clone" and place.repo is not None and place.branch is not None:
        clone.agree(at, place.repo, place.branch)
