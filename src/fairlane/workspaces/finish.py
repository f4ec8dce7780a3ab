"""Finish: after a success the rest is committed, and the branch is kept, merged or offered."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fairlane.model.errors import FairlaneError, Refused
from fairlane.model.project import Project
from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces.checkouts import (
    Unsafe,
    branches_out,
    check_branch,
    checkout_at,
    verified,
)
from fairlane.workspaces.commit import commit_all, refuse_nested
from fairlane.workspaces.git import (
    Checkout,
    branch_of,
    call,
    commit_of,
    committer,
    git,
    is_ancestor,
    is_dirty,
    one_at_a_time,
)
from fairlane.workspaces.place import Place, place_of

#: No command of a project may hang for longer.
COMMAND_SECONDS_MAX = 600


def finish(
    home: Path, settings: Settings, project: Project, task: Task, workspace: str | None
) -> str:
    """What follows a success; a problem is told in words, and nothing is lost by it."""
    if project.repo is None:
        return ""
    try:
        place = place_of(home, settings, project, task, workspace)
        if place.repo is None or place.branch is None:
            return ""
        worktree = _verified(place, place.repo, place.branch)
        if settings.workspaces.commit == "rest":
            _commit_rest(worktree, commit_of(place.repo, place.base or "HEAD"), task)
        if task.merge == "keep":
            return ""
        if task.merge == "merge":
            with one_at_a_time(home, place.repo.path):
                return _merge(place, place.repo)
        return _offer(place, project)
    except FairlaneError as error:
        return f"{error.message}. {error.hint}" if error.hint else error.message


def _verified(place: Place, repo: Checkout, branch: str) -> Checkout:
    """The task's worktree, on its branch: nothing is written anywhere else."""
    worktree = verified(repo, place.path)
    check_branch(repo, branch)
    if (now_on := branch_of(worktree)) != branch:
        hint = f"`fairlane workspaces` lists it; `git -C {place.path} checkout {branch}` goes back."
        message = f"{place.path} is on {now_on or 'no branch'}, not on {branch}"
        raise Refused(message, hint, Unsafe.code)
    return worktree


def _commit_rest(worktree: Checkout, base: str | None, task: Task) -> None:
    refuse_nested(worktree, base)
    if is_dirty(worktree):
        first = (task.title or task.prompt.strip().split("\n")[0] or task.id)[:72]
        commit_all(worktree, f"{first}\n\nTask: {task.id}\n")


def _merge(place: Place, repo: Checkout) -> str:
    """Into the base branch, without a checkout where nobody has it checked out."""
    base, branch = place.base or "HEAD", place.branch or ""
    old, new = commit_of(repo, f"refs/heads/{base}"), commit_of(repo, f"refs/heads/{branch}")
    if old is None or new is None:
        return f"there is no branch {base} to merge into"
    if is_ancestor(repo, new, old):
        return ""
    merged = new
    if not is_ancestor(repo, old, new):
        options = ("--write-tree", "--name-only", "--no-messages")
        tree = call(repo, "merge-tree", *options, old, new, code_ok=(0, 1))
        if tree.returncode:
            files = tree.stdout.splitlines()[1:]
            more = f" and {len(files) - 3} more" if len(files) > 3 else ""
            return f"merge conflict with {base}: {', '.join(files[:3])}{more}"
        words = ("commit-tree", tree.stdout.split()[0], "-p", old, "-p", new)
        merged = git(repo, *words, "-m", f"Merge {branch}", settings=committer(repo))
    return _advance(repo, base, old, merged)


def _advance(repo: Checkout, base: str, old: str, new: str) -> str:
    """The base branch goes on; a checkout of it goes along if it is clean."""
    check_branch(repo, base)
    for folder, branch in branches_out(repo).items():
        if branch == base:
            checkout = checkout_at(repo, folder)
            if is_dirty(checkout):
                return f"{base} is checked out in {folder} with changes that are not committed"
            plain = [(f"branch.{base}.mergeOptions", "")]
            git(checkout, "merge", "--quiet", "--no-stat", "--ff-only", new, settings=plain)
            return ""
    git(repo, "update-ref", f"refs/heads/{base}", new, old)
    return ""


def _offer(place: Place, project: Project) -> str:
    """The project's own command opens a pull request."""
    if not project.pr:
        return f"project {project.name} has no command for pull requests"
    try:
        done = subprocess.run(
            list(project.pr), cwd=place.path, capture_output=True, text=True, check=False,
            timeout=COMMAND_SECONDS_MAX, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{project.pr[0]}: {error}"
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return "" if done.returncode == 0 else f"{project.pr[0]}: {said[-1] if said else 'failed'}"
