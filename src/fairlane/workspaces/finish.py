"""Finish: after a success the rest is committed, and the branch is kept, merged or offered."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fairlane.model.errors import FairlaneError
from fairlane.model.project import Project
from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces.git import (
    branch_of,
    call,
    checkouts,
    commit_all,
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
        if place.branch is not None and settings.workspaces.commit == "rest":
            _commit_rest(place, task)
        if place.branch is None or task.merge == "keep":
            return ""
        if (now_on := branch_of(place.path)) != place.branch:
            return f"{place.path} is on {now_on or 'no branch'}, not on {place.branch}"
        if task.merge == "merge":
            with one_at_a_time(home, place.repo or place.path):
                return _merge(place)
        return _offer(place, project)
    except FairlaneError as error:
        return error.message


def _commit_rest(place: Place, task: Task) -> None:
    if is_dirty(place.path):
        first = (task.title or task.prompt.strip().split("\n")[0] or task.id)[:72]
        commit_all(place.path, f"{first}\n\nTask: {task.id}\n")


def _merge(place: Place) -> str:
    """Into the base branch, without a checkout where nobody has it checked out."""
    assert place.repo is not None
    base, branch = place.base or "HEAD", place.branch or ""
    old, new = commit_of(place.repo, f"refs/heads/{base}"), commit_of(place.repo, branch)
    if old is None or new is None:
        return f"there is no branch {base} to merge into"
    if is_ancestor(place.repo, new, old):
        return ""
    merged = new
    if not is_ancestor(place.repo, old, new):
        options = ("--write-tree", "--name-only", "--no-messages")
        tree = call(place.repo, "merge-tree", *options, old, new, code_ok=(0, 1))
        if tree.returncode:
            files = tree.stdout.splitlines()[1:]
            more = f" and {len(files) - 3} more" if len(files) > 3 else ""
            return f"merge conflict with {base}: {', '.join(files[:3])}{more}"
        words = ("commit-tree", tree.stdout.split()[0], "-p", old, "-p", new)
        merged = git(place.repo, *committer(place.repo), *words, "-m", f"Merge {branch}")
    return _advance(place.repo, base, old, merged)


def _advance(repo: Path, base: str, old: str, new: str) -> str:
    """The base branch goes on; a checkout of it goes along if it is clean."""
    for folder, branch in checkouts(repo).items():
        if branch == base:
            if is_dirty(folder):
                return f"{base} is checked out in {folder} with changes that are not committed"
            git(folder, "merge", "--quiet", "--ff-only", new)
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
