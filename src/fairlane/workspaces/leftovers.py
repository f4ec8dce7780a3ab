"""Leftovers: the worktrees and clones of tasks, and which of them are safe to remove."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlane.model.errors import FairlaneError, Refused, listed
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.task import Status
from fairlane.settings import Settings
from fairlane.workspaces import checkouts, clone, git, repository, submodules, tree
from fairlane.workspaces.place import base_of, folder_of, is_ours, repo_of
from fairlane.workspaces.plain_files import NotPlain, shown

_UNSAFE = (checkouts.Unsafe.code, repository.Unsafe.code)


@dataclass(frozen=True, slots=True)
class Leftover:
    """One worktree or clone, and why it must stay, if it must."""

    project: str
    name: str  # of the task, or of the pool's folder
    path: Path
    branch: str | None
    keep: str  # why it is not removed; empty: nothing is lost by it


def leftovers(
    home: Path, settings: Settings, projects: Mapping[str, Project], statuses: Mapping[str, Status]
) -> list[Leftover]:
    """Every worktree and clone of every project, with the reasons not to remove it."""
    rows = []
    for project in projects.values():
        folder = folder_of(home, settings, project)
        paths = sorted(folder.iterdir()) if project.repo and folder.is_dir() else []
        try:
            repo = repo_of(home, project) if paths else None
        except FairlaneError as error:
            keep = f"not safe: {error.message}" if error.error_code in _UNSAFE else error.message
            rows += [Leftover(project.name, path.name, path, None, keep) for path in paths]
            continue
        rows += [_look(project, repo, path, statuses) for path in paths if repo is not None]
    return rows


def clean(home: Path, leftover: Leftover, project: Project) -> None:
    """Remove one that is safe to remove, and its branch, which is merged."""
    repo = repo_of(home, project)
    with git.one_at_a_time(home, repo):
        if clone.is_clone(repo, leftover.path):
            at = clone.verified(repo, leftover.path)
            if why := _reason_of_clone(project, repo, at, None):
                raise Refused(f"{leftover.path} stays: {why}")
            clone.remove(at)
        else:
            worktree = checkouts.verified(repo, leftover.path)
            if why := _unfinished(worktree):
                raise Refused(f"{leftover.path} stays: {why}")
            submodules.empty(worktree)
            git.run(repo, "worktree", "remove", str(leftover.path))
        if leftover.branch and is_ours(leftover.branch):
            git.run(repo, "branch", "--quiet", "-D", leftover.branch)


def _look(
    project: Project, repo: git.Checkout, path: Path, statuses: Mapping[str, Status]
) -> Leftover:
    name, branch, status = path.name, None, statuses.get(path.name)
    try:
        if clone.is_clone(repo, path):
            at = clone.verified(repo, path)
            branch = clone.branch_of(path)
            keep = _reason_of_clone(project, repo, at, status)
        elif (worktree := checkouts.worktree_at(repo, path)) is None:
            keep = "it is no worktree"
        else:
            branch = git.branch_of(worktree)
            keep = _reason(project, repo, worktree, branch, status)
    except checkouts.Unsafe as error:
        keep = f"not safe: {error.why}"
    except (NotPlain, OSError) as error:
        keep = f"not safe: {shown(str(error))}"
    except FairlaneError as error:
        keep = error.message
    return Leftover(project.name, name, path, branch, keep)


def _reason(
    project: Project,
    repo: git.Checkout,
    worktree: git.Checkout,
    branch: str | None,
    status: Status | None,
) -> str:
    if worktree.path.name in (project.workspaces or ()):
        return "it belongs to the pool"
    if branch is not None and not is_ours(branch):
        return f"not safe: it is on {branch}, which is no task's branch"
    if status is not None and not status.final:
        return f"its task is {status}"
    if inside := _unfinished(worktree):
        return inside
    base = base_of(repo, branch) if branch is not None else project.base or "HEAD"
    if branch is None or not git.is_ancestor(repo, f"refs/heads/{branch}", base):
        return f"its work is not merged into {base}"
    return ""


def _reason_of_clone(
    project: Project, repo: git.Checkout, at: git.Checkout, status: Status | None
) -> str:
    if status is not None and not status.final:
        return f"its task is {status}"
    branch = git.branch_of(at)
    if branch is None or git.commit_of(at, "HEAD") is None:
        return "its branch is not in the repository"
    base = base_of(repo, branch)
    for name, commit in sorted(clone.commits_of(at.path).items()):
        if not git.is_ancestor(repo, commit, base):
            short = shown(name.removeprefix("refs/heads/"))
            fetched = git.commit_of(repo, commit) is not None
            return f"{short} is not {f'merged into {base}' if fetched else 'fetched'}"
    git.run(at, "read-tree", "HEAD")
    return _unfinished(at)


def _unfinished(at: git.Checkout) -> str:
    """What would be lost."""
    if tree.is_dirty(at):
        return "it has changes that are not committed"
    inside = tree.repositories_in(at)
    if others := sorted({*inside} - submodules.declared(at)) if inside else []:
        return f"it has repositories inside: {listed([shown(name) for name in others], 3)}"
    return submodules.reason_to_stay(at) if inside else ""
