"""Place: the folder in which an attempt works, made ready and checked before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairlead.model.errors import Refused
from fairlead.model.project import Project
from fairlead.model.task import Task
from fairlead.settings import Settings
from fairlead.workspaces.git import (
    GitError,
    branch_of,
    commit_all,
    commit_of,
    git,
    is_dirty,
    one_at_a_time,
    top_of,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which one attempt works."""

    path: Path
    repo: Path | None = None
    branch: str | None = None
    base: str | None = None


def prepare(
    home: Path, settings: Settings, project: Project, task: Task, workspace: str | None
) -> Place:
    """The folder of this attempt: it is what it should be, or the attempt does not start."""
    place = place_of(home, settings, project, task, workspace)
    if place.repo is None:
        place.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place
    if place.path == place.repo:
        return place
    with one_at_a_time(home, place.repo):
        if workspace is not None:
            _ready_pool(place, place.repo)
        else:
            _ready_worktree(place, place.repo)
    _check(place, place.repo)
    return place


def place_of(
    home: Path, settings: Settings, project: Project, task: Task, workspace: str | None
) -> Place:
    """Where an attempt works, ready or not."""
    if project.repo is None:
        return Place(home / "work" / task.id)
    repo = repo_of(project)
    base = task.base or project.base or branch_of(repo) or "HEAD"
    branch = f"fairlead/{task.id}"
    if settings.workspaces.mode == "shared":
        return Place(repo, repo, None, base)
    root = folder_of(home, settings, project)
    return Place(root / (workspace or task.id), repo, branch, base)


def folder_of(home: Path, settings: Settings, project: Project) -> Path:
    """Where the worktrees of a project are."""
    chosen = settings.workspaces.folder
    return (Path(chosen).expanduser() if chosen else home / "worktrees") / project.name


def repo_of(project: Project) -> Path:
    """The work tree of a project's repository, or an error that says what is wrong with it."""
    folder = Path(project.repo or "").expanduser()
    if not folder.is_dir():
        hint = f"`fairlead project set {project.name} --repo PATH` corrects it."
        raise Refused(f"the repository of {project.name} is not there: {folder}", hint, "no_repo")
    top = top_of(folder)
    if top is None:
        hint = f"`git init {folder}` makes it one; take --repo off to work without."
        raise Refused(f"{folder} is not a git repository", hint, "no_repo")
    if commit_of(top, "HEAD") is None:
        raise Refused(f"{top} has no commit yet", "Make a first commit.", "no_repo")
    return top


def _ready_worktree(place: Place, repo: Path) -> None:
    """One worktree a task: made anew, or the one that an earlier attempt left."""
    assert place.branch is not None
    assert place.base is not None
    if top_of(place.path) == place.path.resolve():
        if branch_of(place.path) != place.branch:
            git(place.path, "checkout", "--quiet", place.branch)
        return
    git(repo, "worktree", "prune")
    if place.path.exists() and any(place.path.iterdir()):
        hint = "Move it away, or take it back into git."
        raise Refused(f"{place.path} is in the way and is no worktree", hint, "in_the_way")
    place.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if commit_of(repo, f"refs/heads/{place.branch}") is not None:
        git(repo, "worktree", "add", "--quiet", str(place.path), place.branch)
        return
    start = commit_of(repo, place.base)
    if start is None:
        raise GitError(f"{repo} has no {place.base}", "Name another base branch.")
    words = ("worktree", "add", "--quiet", "--no-track", "-b", place.branch, str(place.path))
    git(repo, *words, start)


def _ready_pool(place: Place, repo: Path) -> None:
    """A named folder that tasks use one after the other; what one left is kept on its branch."""
    assert place.branch is not None
    assert place.base is not None
    if top_of(place.path) != place.path.resolve():
        git(repo, "worktree", "prune")
        place.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        git(repo, "worktree", "add", "--quiet", "--detach", str(place.path))
    if branch_of(place.path) == place.branch:
        return
    if is_dirty(place.path):
        commit_all(place.path, "Left over by an earlier task")
    if commit_of(repo, f"refs/heads/{place.branch}") is None:
        start = commit_of(repo, place.base)
        if start is None:
            raise GitError(f"{repo} has no {place.base}", "Name another base branch.")
        git(place.path, "checkout", "--quiet", "--no-track", "-b", place.branch, start)
    else:
        git(place.path, "checkout", "--quiet", place.branch)


def _check(place: Place, repo: Path) -> None:
    """The folder is the worktree itself, not a folder of the repository above it."""
    top = top_of(place.path)
    if top != place.path.resolve() or top == repo:
        raise GitError(f"{place.path} is not a worktree of its own (it belongs to {top})")
    if branch_of(place.path) != place.branch:
        raise GitError(f"{place.path} is on {branch_of(place.path)}, not on {place.branch}")
