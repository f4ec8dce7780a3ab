"""Leftovers: worktrees that tasks left behind; removed only where nothing can be lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlane.model.errors import FairlaneError
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.task import Status
from fairlane.settings import Settings
from fairlane.workspaces.checkouts import Unsafe, check_records, verified, worktree_at
from fairlane.workspaces.commit import repositories_in
from fairlane.workspaces.git import (
    Checkout,
    branch_of,
    git,
    is_ancestor,
    is_dirty,
    one_at_a_time,
    programs_off,
    shown,
)
from fairlane.workspaces.place import base_of, folder_of, is_ours, repo_of


@dataclass(frozen=True, slots=True)
class Leftover:
    """One worktree, and why it must stay, if it must."""

    project: str
    name: str  # of the task, or of the pool's folder
    path: Path
    branch: str | None
    keep: str  # why it is not removed; empty: nothing is lost by it


def leftovers(
    home: Path,
    settings: Settings,
    projects: Mapping[str, Project],
    statuses: Mapping[str, Status],
) -> list[Leftover]:
    """Every worktree of every project, with what stands against removing it."""
    found = []
    for project in projects.values():
        folder = folder_of(home, settings, project)
        paths = sorted(folder.iterdir()) if project.repo and folder.is_dir() else []
        found += [_look(project, path, statuses) for path in paths]
    return found


def clean(home: Path, leftover: Leftover, project: Project) -> None:
    """Remove one that is safe to remove, and its branch, which is merged."""
    repo = repo_of(project)
    with one_at_a_time(home, repo.path):
        check_records(repo)
        worktree = verified(repo, leftover.path)
        words = ("worktree", "remove", str(leftover.path))
        git(repo, *words, settings=programs_off(worktree))  # git looks into it once more
        if leftover.branch and is_ours(leftover.branch):
            git(repo, "branch", "--quiet", "-D", leftover.branch)


def _look(project: Project, path: Path, statuses: Mapping[str, Status]) -> Leftover:
    name, branch = path.name, None
    try:
        repo = repo_of(project)
        worktree = worktree_at(repo, path)
        if worktree is None:
            return Leftover(project.name, name, path, None, "it is no worktree")
        branch = branch_of(worktree)
        keep = _reason(project, repo, worktree, branch, statuses.get(name))
    except Unsafe as error:
        keep = f"not safe: {error.why}"
    except FairlaneError as error:
        keep = error.message
    return Leftover(project.name, name, path, branch, keep)


def _reason(
    project: Project, repo: Checkout, worktree: Checkout, branch: str | None, status: Status | None
) -> str:
    if name_declared(project, worktree.path.name):
        return "it belongs to the pool"
    if branch is not None and not is_ours(branch):
        return f"not safe: it is on {branch}, which is no task's branch"
    if status is not None and not status.final:
        return f"its task is {status}"
    if is_dirty(worktree):
        return "it has changes that are not committed"
    if inside := repositories_in(worktree):
        return f"it has submodules: {', '.join(map(shown, inside))}"
    base = project.base or "HEAD"
    if branch is not None:
        base = base_of(repo, branch)
    if branch is None or not is_ancestor(repo, f"refs/heads/{branch}", base):
        return f"its work is not merged into {base}"
    return ""


def name_declared(project: Project, name: str) -> bool:
    """Whether a folder is one of the project's named workspaces."""
    return name in (project.workspaces or ())
