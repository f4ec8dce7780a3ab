"""Finish a success: fetch from a clone, commit the rest, keep, merge or offer the branch."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fairlane.model.errors import FairlaneError, Refused, listed
from fairlane.model.project import Project
from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces import checkouts, clone, git, tree
from fairlane.workspaces.place import Place, place_of
from fairlane.workspaces.plain_files import NotPlain

#: No command of a project may hang for longer.
COMMAND_SECONDS_MAX = 600


def finish(
    home: Path,
    settings: Settings,
    project: Project,
    task: Task,
    workspace: str | None,
    sandboxed: bool = False,
) -> str:
    """Finish after a success; a problem becomes a message, and no work is lost."""
    if project.repo is None:
        return ""
    try:
        place = place_of(home, settings, project, task, workspace, sandboxed)
        if place.repo is None or place.branch is None:
            return ""
        at = _taken_in(home, place, place.repo, place.branch)
        if settings.workspaces.commit == "rest":
            _commit_rest(place, at, git.commit_of(place.repo, place.base or "HEAD"), task)
        if task.merge == "keep":
            return ""
        if task.merge == "merge":
            with git.one_at_a_time(home, place.repo):
                return _merge(place, place.repo)
        return _offer(at, project)
    except FairlaneError as error:
        return f"{error.message}. {error.hint}" if error.hint else error.message


def _taken_in(home: Path, place: Place, repo: git.Checkout, branch: str) -> git.Checkout:
    """The task's work tree, on its branch, which the repository has: nothing else is written."""
    if place.mode != "clone":
        worktree = checkouts.verified(repo, place.path)
        _check_branch(place, git.branch_of(worktree))
        return worktree
    at = clone.verified(repo, place.path)
    try:
        _check_branch(place, clone.branch_of(place.path))
    except NotPlain as error:
        raise checkouts.Unsafe(place.path, repo, str(error), "clone") from error
    with git.one_at_a_time(home, repo):
        clone.fetch(at, repo, branch)
    return at


def _check_branch(place: Place, now_on: str | None) -> None:
    if now_on != place.branch:
        back = f"`git -C {place.path} checkout {place.branch}` goes back."
        message = f"{place.path} is on {now_on or 'no branch'}, not on {place.branch}"
        raise Refused(message, f"`fairlane workspaces` lists it; {back}", checkouts.Unsafe.code)


def _commit_rest(place: Place, at: git.Checkout, base: str | None, task: Task) -> None:
    tree.refuse_nested(at, base)
    if not tree.is_dirty(at):
        return
    first = (task.title or task.prompt.strip().split("\n")[0] or task.id)[:72]
    tree.commit_all(at, f"{first}\n\nTask: {task.id}\n")
    if place.mode == "clone" and place.repo is not None and place.branch is not None:
        clone.agree(at, place.repo, place.branch)


def _merge(place: Place, repo: git.Checkout) -> str:
    """Into the base branch, without a checkout where nobody has it checked out."""
    base, branch = place.base or "HEAD", place.branch or ""
    old, new = (
        git.commit_of(repo, f"refs/heads/{base}"),
        git.commit_of(repo, f"refs/heads/{branch}"),
    )
    if old is None or new is None:
        return f"there is no branch {base} to merge into"
    if git.is_ancestor(repo, new, old):
        return ""
    merged = new
    if not git.is_ancestor(repo, old, new):
        options = ("--write-tree", "--name-only", "--no-messages")
        tree = git.call(repo, "merge-tree", *options, old, new, code_ok=(0, 1))
        if tree.returncode:
            files = tree.stdout.splitlines()[1:]
            return f"merge conflict with {base}: {listed(files, 3)}"
        words = ("commit-tree", tree.stdout.split()[0], "-p", old, "-p", new)
        merged = git.run(repo, *words, "-m", f"Merge {branch}", settings=git.committer(repo))
    return _advance(repo, base, old, merged)


def _advance(repo: git.Checkout, base: str, old: str, new: str) -> str:
    """Advance the base branch, and its checkout if that is clean."""
    for folder, branch in checkouts.branches_out(repo).items():
        if branch == base:
            checkout = checkouts.checkout_at(repo, folder)
            if tree.is_dirty(checkout):
                return f"{base} is checked out in {folder} with changes that are not committed"
            plain = [(f"branch.{base}.mergeOptions", "")]
            git.run(checkout, "merge", "--quiet", "--no-stat", "--ff-only", new, settings=plain)
            return ""
    git.run(repo, "update-ref", f"refs/heads/{base}", new, old)
    return ""


def _offer(at: git.Checkout, project: Project) -> str:
    """The project's own command opens a pull request; git runs nothing of an agent's in it."""
    if not project.pr:
        return f"project {project.name} has no command for pull requests"
    try:
        done = subprocess.run(
            list(project.pr), cwd=at.path, capture_output=True, text=True, check=False,
            timeout=COMMAND_SECONDS_MAX, stdin=subprocess.DEVNULL, env=at.environment_of_user,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{project.pr[0]}: {error}"
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return "" if done.returncode == 0 else f"{project.pr[0]}: {said[-1] if said else 'failed'}"
