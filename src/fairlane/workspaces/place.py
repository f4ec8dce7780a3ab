"""Place: the folder in which an attempt works, made ready and checked before it starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from fairlane.careful_files import make_folder
from fairlane.model.errors import Refused, Shortage
from fairlane.model.names import OLD_NAME
from fairlane.model.project import Project
from fairlane.model.record import dataclass, replace
from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces import (
    carry,
    checkouts,
    clone,
    git,
    remotes,
    repository,
    submodules,
    tree,
    upload,
)
from fairlane.workspaces.plain_files import NotPlain, line_of

#: What the one workspace is called of a project that works in its repository itself.
SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which one attempt works."""

    path: Path
    repo: git.Checkout | None = None
    branch: str | None = None
    base: str | None = None
    mode: str = "none"
    reads: tuple[Path, ...] = ()  # what the agent's git reads outside of the folder


def mode_for(settings: Settings, project: Project, sandboxed: bool = False) -> str:
    """How an attempt works: `none` (no repository), `worktree`, `pool`, `shared` or `clone`.

    Whoever starts an agent in a sandbox asks here first, and passes `sandboxed` on to `prepare`
    and `finish`: a sandboxed agent works in a clone, because worktrees, pools and the repository
    itself would need the repository's git folder writable; the latter two are refused.
    `Place.reads` has the folders that the sandbox must let it read.
    """
    if project.repo is None:
        return "none"
    mode = settings.workspaces.mode
    if project.workspaces is not None:
        mode = "pool"
    elif mode == "pool":
        mode = "worktree"  # it names no folders
    if not sandboxed:
        return mode
    if mode in ("pool", "shared"):
        what = "named workspaces" if mode == "pool" else 'workspaces.mode = "shared"'
        hint = f"Use a clone for each task, or no sandbox for project {project.name}."
        message = f"a sandboxed agent of {project.name} cannot work in {what}"
        raise Refused(message, hint, "sandbox")
    return "clone"


def prepare(
    home: Path,
    settings: Settings,
    project: Project,
    task: Task,
    workspace: str | None,
    sandboxed: bool = False,
    starts: Sequence[tuple[str, str]] = (),
) -> Place:
    """The folder of this attempt: it is what it should be, or the attempt does not start.

    `starts` is the work that the task carries: the task that did it, and its last commit; or its
    branch, where nobody has recorded a commit.
    """
    place = place_of(home, settings, project, task, workspace, sandboxed)
    repo = place.repo
    if repo is None:
        make_folder(place.path)
        return place
    if place.branch is None:
        return place
    if (task.base or project.base) is None:
        place = _with_base_of(place, repo, starts)
    if task.merge == "pr":
        remotes.check(repo, place.base or "HEAD")
    try:
        reads = _ready(home, place, repo, starts)
    except Shortage as error:
        raise Shortage(f"no room for {place.path}: {error.message}") from error
    return replace(place, reads=(*place.reads, *reads)) if place.mode == "clone" else place


def _ready(
    home: Path, place: Place, repo: git.Checkout, starts: Sequence[tuple[str, str]]
) -> tuple[Path, ...]:
    """A work tree with the task's branch and the work that it carries; what submodules read."""
    assert place.branch is not None
    with git.one_at_a_time(home, repo):
        starts = _commits_of(repo, starts)
        known = git.commit_of(repo, f"refs/heads/{place.branch}")
        start = known or _new_start(place, repo, starts)
        if place.mode == "clone":
            _ready_clone(place, repo, start)
            at = clone.tree_of(repo, place.path)
        else:
            _clear_half_made(place, repo)
            at = (_ready_pool if place.mode == "pool" else _ready_worktree)(
                place, repo, start, known is not None
            )
            (at.own / "index.lock").unlink(missing_ok=True)  # of one that was killed
        if (now_on := git.branch_of(at)) != place.branch:  # a branch can lead to another one
            raise git.GitError(f"{place.path} is on {now_on}, not on {place.branch}")
        if known is not None:
            _take_in(place, repo, starts)
        return _fill_submodules(place, repo, at)


def _read_by_submodules(repo: git.Checkout, path: Path) -> tuple[Path, ...]:
    """What the submodules of a clone that is there read."""
    at = clone.tree_of(repo, path)
    return submodules.read_by(at) if (at.own / "HEAD").is_file() else ()


def _fill_submodules(place: Place, repo: git.Checkout, at: git.Checkout) -> tuple[Path, ...]:
    if git.commit_of(at, "HEAD") is None or not submodules.any_in(at):
        return ()
    tree.check_no_pipes(at)
    return submodules.fill(at, tree.registered(at, git.commit_of(repo, place.base or "HEAD")))


def _new_start(place: Place, repo: git.Checkout, starts: Sequence[tuple[str, str]]) -> str:
    """The commit from which a new branch starts; kept first: a crash may leave the branch alone."""
    assert place.branch is not None
    base = git.commit_of(repo, place.base or "HEAD")
    if base is None:
        raise git.GitError(f"{repo.path} has no {place.base}", "Name another base branch.")
    start = carry.start_for(repo, place.branch.partition("/")[2], base, starts)
    _keep_base(place, repo)
    carry.keep_start(repo, place.branch, start)
    return start.commit


def _take_in(place: Place, repo: git.Checkout, starts: Sequence[tuple[str, str]]) -> None:
    """The task goes on in its own work tree, with what is new in the tasks that it needs."""
    assert place.branch is not None
    branch, base = place.branch, git.commit_of(repo, place.base or "HEAD") or "HEAD"
    if place.mode != "clone":
        worktree = checkouts.verified(repo, place.path)
        carry.complete(repo, worktree, branch, _nothing)
        carry.take_in(repo, worktree, branch, base, starts, _nothing)
        return
    at = clone.verified(repo, place.path)
    agree = partial(clone.agree, at, repo, branch)
    carry.complete(repo, at, branch, agree)
    if starts:
        check_branch(place, clone.branch_of(place.path))
        clone.fetch(at, repo, branch)
        carry.take_in(repo, at, branch, base, starts, agree)


def _nothing() -> None:
    pass


def _commits_of(repo: git.Checkout, starts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Work that is given by its branch, by its commit; without a branch there is none."""
    found = ((task, _head_of(repo, task) if is_ours(head) else head) for task, head in starts)
    return [(task, head) for task, head in found if head is not None]


def _head_of(repo: git.Checkout, task: str) -> str | None:
    return git.commit_of(repo, f"refs/heads/{branch_for(repo, task)}")


def _with_base_of(place: Place, repo: git.Checkout, starts: Sequence[tuple[str, str]]) -> Place:
    """The base of the first work that is carried, whatever is checked out now."""
    assert place.branch is not None
    if kept_base(repo, place.branch) is not None or not starts:
        return place
    base = kept_base(repo, branch_for(repo, starts[0][0]))
    return place if base is None or git.commit_of(repo, base) is None else replace(place, base=base)


def check_branch(place: Place, now_on: str | None) -> None:
    """`Refused`: its work tree is on another branch than the task's."""
    if now_on != place.branch:
        back = f"`git -C {place.path} checkout {place.branch}` goes back."
        message = f"{place.path} is on {now_on or 'no branch'}, not on {place.branch}"
        raise Refused(message, f"`fairlane workspaces` lists it; {back}", checkouts.Unsafe.code)


def place_of(
    home: Path,
    settings: Settings,
    project: Project,
    task: Task,
    workspace: str | None,
    sandboxed: bool = False,
) -> Place:
    """Where an attempt works, ready or not."""
    path = path_of(home, settings, project, task.id, workspace)
    mode = mode_for(settings, project, sandboxed)
    if project.repo is None:
        return Place(path)
    repo = repo_of(home, project)
    branch = branch_for(repo, task.id)
    base = task.base or project.base or base_of(repo, branch)
    if mode == "shared":
        return Place(repo.path, repo, None, base, mode)
    reads = (*upload.objects_of(repo), *_read_by_submodules(repo, path)) if mode == "clone" else ()
    return Place(path, repo, branch, base, mode, reads)


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
    return mode_for(settings, project) == "shared"


def branch_for(repo: git.Checkout, task: str) -> str:
    """`fairlane/TASK`; work that began under the product's old name stays on its branch."""
    old = f"{OLD_NAME}/{task}"
    return old if git.commit_of(repo, f"refs/heads/{old}") else f"fairlane/{task}"


def is_ours(branch: str) -> bool:
    """Whether a branch is one of a task."""
    return branch.startswith(("fairlane/", f"{OLD_NAME}/"))


def base_of(repo: git.Checkout, branch: str) -> str:
    """Where a branch of ours began: what was checked out then, whatever is now."""
    if (kept := kept_base(repo, branch)) is not None:
        return kept
    old = f"branch.{branch}.{branch.partition('/')[0]}-base"
    return git.configured(repo, old) or git.branch_of(repo) or "HEAD"


def kept_base(repo: git.Checkout, branch: str) -> str | None:
    """The base that was kept when a branch was made; None: there is none."""
    with suppress(NotPlain):
        return line_of(_base_file(repo, branch))
    return None


def _keep_base(place: Place, repo: git.Checkout) -> None:
    assert place.branch is not None
    file = _base_file(repo, place.branch)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    repository.replace(file, f"{place.base}\n")


def _base_file(repo: git.Checkout, branch: str) -> Path:
    return repository.folder_for(repo) / "bases" / branch.replace("/", "~")


def folder_of(home: Path, settings: Settings, project: Project) -> Path:
    """Where the worktrees of a project are."""
    chosen = settings.workspaces.folder
    return (Path(chosen).expanduser() if chosen else home / "worktrees") / project.name


def repo_of(home: Path, project: Project) -> git.Checkout:
    """The checkout of a project's repository, or an error that says what is wrong with it."""
    folder = Path(project.repo or "").expanduser()
    if not folder.is_dir():
        hint = f"`fairlane project set {project.name} --repo PATH` corrects it."
        raise Refused(f"the repository of {project.name} is not there: {folder}", hint, "no_repo")
    repo = repository.open_at(home, folder, project.hooks == "repo")
    if repo is None:
        outer = repository.outer(folder)
        inside = f"; it lies inside {outer}" if outer else ""
        hint = f"`git init {folder}` makes it one; take --repo off to work without."
        raise Refused(f"{folder} is not a git repository{inside}", hint, "no_repo")
    if git.commit_of(repo, "HEAD") is None:
        raise Refused(f"{repo.path} has no commit yet", "Make a first commit.", "no_repo")
    return repo


def _ready_clone(place: Place, repo: git.Checkout, start: str) -> None:
    """A clone a task: made anew, or the one that an earlier attempt left."""
    assert place.branch is not None
    assert place.base is not None
    if not os.path.lexists(place.path / ".git"):
        _make_room(place, repo)
    elif not clone.is_clone(repo, place.path):
        hint = f"`fairlane workspaces` lists it; `git worktree remove {place.path}` takes it away."
        raise Refused(f"{place.path} is a worktree, and a clone is needed", hint, "in_the_way")
    clone.ready(repo, place.path, place.branch, start, place.base)


def _ready_worktree(place: Place, repo: git.Checkout, start: str, is_known: bool) -> git.Checkout:
    """One worktree a task: made anew, or the one that an earlier attempt left."""
    assert place.branch is not None
    if (worktree := checkouts.worktree_at(repo, place.path)) is not None:
        if git.branch_of(worktree) != place.branch:
            git.run(worktree, "checkout", "--quiet", place.branch)
        return worktree
    _make_room(place, repo)
    if is_known:
        _free_branch(place, repo)
        return _new_worktree(repo, place.path, place.branch)
    return _new_worktree(repo, place.path, start, "--no-track", "-b", place.branch)


def _new_worktree(repo: git.Checkout, path: Path, commit: str, *options: str) -> git.Checkout:
    """A worktree, filled in a second call: some settings of a repository hold in it alone."""
    repository.stamp_of(repo, path).unlink(missing_ok=True)  # it is not set up
    lock = ("--lock", "--reason", checkouts.BEING_MADE)  # until it is filled
    git.run(repo, "worktree", "add", "--quiet", "--no-checkout", *lock, *options, str(path), commit)
    worktree = checkouts.verified(repo, path)
    repository.replace(path / ".git", f"gitdir: {worktree.own}\n")  # git wrote our view of it
    git.run(worktree, "checkout", "--quiet", "--force")
    (worktree.own / "locked").unlink(missing_ok=True)
    return worktree


def _ready_pool(place: Place, repo: git.Checkout, start: str, is_known: bool) -> git.Checkout:
    """A named folder that tasks use one after the other; what one left is kept on its branch."""
    assert place.branch is not None
    if (worktree := checkouts.worktree_at(repo, place.path)) is None:
        _make_room(place, repo)
        worktree = _new_worktree(repo, place.path, "HEAD", "--detach")
    if git.branch_of(worktree) == place.branch:
        return worktree
    _keep_rest(repo, worktree)
    if is_known:
        _free_branch(place, repo)
        git.run(worktree, "checkout", "--quiet", place.branch)
    else:
        git.run(worktree, "checkout", "--quiet", "--no-track", "-b", place.branch, start)
    return worktree


def _make_room(place: Place, repo: git.Checkout) -> None:
    """Worktrees whose folder is gone are forgotten; what is not ours is never removed."""
    git.run(repo, "worktree", "prune")
    if place.path.exists() and not (place.path.is_dir() and not any(place.path.iterdir())):
        hint = "Move it away, or take it back into git."
        raise Refused(f"{place.path} is in the way and is no worktree", hint, "in_the_way")
    make_folder(place.path.parent)


def _clear_half_made(place: Place, repo: git.Checkout) -> None:
    """A crash while git made the worktree left a part of it, in which nobody has worked."""
    worktree = checkouts.worktree_at(repo, place.path)
    if worktree is not None and checkouts.is_half_made(worktree):
        git.run(repo, "worktree", "remove", "--force", "--force", str(place.path))


def _free_branch(place: Place, repo: git.Checkout) -> None:
    """Another folder of the project may be on the branch still: its task worked there before."""
    for folder, branch in checkouts.branches_out(repo).items():
        if branch == place.branch and folder.parent == place.path.parent.resolve():
            worktree = checkouts.verified(repo, folder)
            _keep_rest(repo, worktree)
            git.run(worktree, "checkout", "--quiet", "--detach")


def _keep_rest(repo: git.Checkout, worktree: git.Checkout) -> None:
    """What an earlier task left uncommitted is kept on its branch."""
    tree.renew_index(worktree)
    is_dirty = tree.is_dirty(worktree)
    submodules.refuse_changed(worktree, {})
    if not is_dirty:
        return
    branch = git.branch_of(worktree)
    if branch is None or not is_ours(branch):
        hint = f"Commit them in {worktree.path} on a branch, or throw them away."
        where = f"on {branch}, which is no task's branch" if branch else "on no branch"
        raise Refused(f"{worktree.path} has changes and is {where}", hint, "in_the_way")
    tree.refuse_nested(worktree, git.commit_of(repo, base_of(repo, branch)))
    tree.commit_all(worktree, "Left over by an earlier task")
