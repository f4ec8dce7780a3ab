"""Place: the folder in which an attempt works, made ready and checked before it starts."""

from __future__ import annotations

from pathlib import Path

from fairlane.model.errors import Refused
from fairlane.model.names import OLD_NAME
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces.git import (
    GitError,
    branch_of,
    checkouts,
    commit_all,
    commit_of,
    configured,
    git,
    is_dirty,
    is_half_made,
    one_at_a_time,
    own_folder,
    shared_folder,
    top_of,
)

#: What the one workspace is called of a project that works in its repository itself.
SHARED = "shared"


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
        _clear_half_made(place, place.repo)
        if workspace is not None:
            _ready_pool(place, place.repo)
        else:
            _ready_worktree(place, place.repo)
        _check(place, place.repo)
        (own_folder(place.path) / "index.lock").unlink(missing_ok=True)  # of one that was killed
    return place


def place_of(
    home: Path, settings: Settings, project: Project, task: Task, workspace: str | None
) -> Place:
    """Where an attempt works, ready or not."""
    path = path_of(home, settings, project, task.id, workspace)
    if project.repo is None:
        return Place(path)
    repo = repo_of(project)
    branch = branch_for(repo, task.id)
    base = task.base or project.base or base_of(repo, branch)
    if is_shared(settings, project):
        return Place(repo, repo, None, base)
    return Place(path, repo, branch, base)


def path_of(
    home: Path, settings: Settings, project: Project, task: str, workspace: str | None
) -> Path:
    """The folder of an attempt, whether anything is there or not."""
    if project.repo is None:
        return home / "work" / task
    if is_shared(settings, project):
        return Path(project.repo).expanduser().resolve()
    return folder_of(home, settings, project) / (workspace or task)


def is_shared(settings: Settings, project: Project) -> bool:
    """Whether attempts work in the repository itself, and so one at a time."""
    mode = settings.workspaces.mode
    return mode == "shared" and project.repo is not None and project.workspaces is None


def branch_for(repo: Path, task: str) -> str:
    """`fairlane/TASK`; work that began under the product's old name stays on its branch."""
    old = f"{OLD_NAME}/{task}"
    return old if commit_of(repo, f"refs/heads/{old}") else f"fairlane/{task}"


def is_ours(branch: str) -> bool:
    """Whether Fairlane made this branch."""
    return branch.startswith(("fairlane/", f"{OLD_NAME}/"))


def base_of(repo: Path, branch: str) -> str:
    """Where a branch of ours began: what was checked out then, whatever is now."""
    return configured(repo, _base_name(branch)) or branch_of(repo) or "HEAD"


def folder_of(home: Path, settings: Settings, project: Project) -> Path:
    """Where the worktrees of a project are."""
    chosen = settings.workspaces.folder
    return (Path(chosen).expanduser() if chosen else home / "worktrees") / project.name


def repo_of(project: Project) -> Path:
    """The work tree of a project's repository, or an error that says what is wrong with it."""
    folder = Path(project.repo or "").expanduser()
    if not folder.is_dir():
        hint = f"`fairlane project set {project.name} --repo PATH` corrects it."
        raise Refused(f"the repository of {project.name} is not there: {folder}", hint, "no_repo")
    top = top_of(folder)
    if top != folder.resolve():
        inside = f"; it lies inside {top}" if top else ""
        hint = f"`git init {folder}` makes it one; take --repo off to work without."
        raise Refused(f"{folder} is not a git repository{inside}", hint, "no_repo")
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
    _make_room(place, repo)
    if commit_of(repo, f"refs/heads/{place.branch}") is not None:
        _free_branch(place, repo)
        git(repo, "worktree", "add", "--quiet", str(place.path), place.branch)
        return
    words = ("worktree", "add", "--quiet", "--no-track", "-b", place.branch, str(place.path))
    git(repo, *words, _start(place, repo))
    git(repo, "config", _base_name(place.branch), place.base)


def _ready_pool(place: Place, repo: Path) -> None:
    """A named folder that tasks use one after the other; what one left is kept on its branch."""
    assert place.branch is not None
    assert place.base is not None
    if top_of(place.path) != place.path.resolve():
        _make_room(place, repo)
        git(repo, "worktree", "add", "--quiet", "--detach", str(place.path))
    if branch_of(place.path) == place.branch:
        return
    _keep_rest(place.path)
    if commit_of(repo, f"refs/heads/{place.branch}") is None:
        words = ("checkout", "--quiet", "--no-track", "-b", place.branch)
        git(place.path, *words, _start(place, repo))
        git(repo, "config", _base_name(place.branch), place.base)
    else:
        _free_branch(place, repo)
        git(place.path, "checkout", "--quiet", place.branch)


def _make_room(place: Place, repo: Path) -> None:
    """Worktrees whose folder is gone are forgotten; what is not ours is never removed."""
    git(repo, "worktree", "prune")
    if place.path.exists() and not (place.path.is_dir() and not any(place.path.iterdir())):
        hint = "Move it away, or take it back into git."
        raise Refused(f"{place.path} is in the way and is no worktree", hint, "in_the_way")
    place.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def _clear_half_made(place: Place, repo: Path) -> None:
    """A crash while git made the worktree left a part of it, in which nobody has worked."""
    if top_of(place.path) == place.path.resolve() and is_half_made(place.path):
        git(repo, "worktree", "remove", "--force", "--force", str(place.path))


def _free_branch(place: Place, repo: Path) -> None:
    """Another folder of the project may be on the branch still: its task worked there before."""
    for folder, branch in checkouts(repo).items():
        if branch == place.branch and folder.parent == place.path.parent.resolve():
            _keep_rest(folder)
            git(folder, "checkout", "--quiet", "--detach")


def _keep_rest(folder: Path) -> None:
    """What an earlier task left uncommitted is kept on its branch."""
    if is_dirty(folder):
        if branch_of(folder) is None:
            hint = "Commit them on a branch, or throw them away."
            raise Refused(f"{folder} has changes and is on no branch", hint, "in_the_way")
        commit_all(folder, "Left over by an earlier task")


def _start(place: Place, repo: Path) -> str:
    """The commit from which a new branch starts."""
    found = commit_of(repo, place.base or "HEAD")
    if found is None:
        raise GitError(f"{repo} has no {place.base}", "Name another base branch.")
    return found


def _base_name(branch: str) -> str:
    return f"branch.{branch}.{branch.partition('/')[0]}-base"


def _check(place: Place, repo: Path) -> None:
    """The folder is the worktree itself, not a folder of the repository above it."""
    top = top_of(place.path)
    if top != place.path.resolve() or top == repo:
        raise GitError(f"{place.path} is not a worktree of its own (it belongs to {top})")
    if shared_folder(place.path) != shared_folder(repo):
        raise GitError(f"{place.path} is no worktree of {repo}", "Move it away.")
    if branch_of(place.path) != place.branch:
        raise GitError(f"{place.path} is on {branch_of(place.path)}, not on {place.branch}")
