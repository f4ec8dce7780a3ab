"""Finish a success: commit the rest, keep, merge or offer the branch; remove old worktrees."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from fairlane.model.errors import FairlaneError, Refused
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.task import Status, Task
from fairlane.settings import Settings
from fairlane.workspaces import checkouts, git
from fairlane.workspaces.place import Place, base_of, folder_of, is_ours, place_of, repo_of

#: No command of a project may hang for longer.
COMMAND_SECONDS_MAX = 600


def finish(
    home: Path, settings: Settings, project: Project, task: Task, workspace: str | None
) -> str:
    """Finish after a success; a problem becomes a message, and no work is lost."""
    if project.repo is None:
        return ""
    try:
        place = place_of(home, settings, project, task, workspace)
        if place.repo is None or place.branch is None:
            return ""
        worktree = _verified(place, place.repo, place.branch)
        if settings.workspaces.commit == "rest":
            _commit_rest(worktree, git.commit_of(place.repo, place.base or "HEAD"), task)
        if task.merge == "keep":
            return ""
        if task.merge == "merge":
            with git.one_at_a_time(home, place.repo.path):
                return _merge(place, place.repo)
        return _offer(place, project)
    except FairlaneError as error:
        return f"{error.message}. {error.hint}" if error.hint else error.message


def _verified(place: Place, repo: git.Checkout, branch: str) -> git.Checkout:
    """The task's worktree, on its branch: nothing is written anywhere else."""
    worktree = checkouts.verified(repo, place.path)
    checkouts.check_branch(repo, branch)
    if (now_on := git.branch_of(worktree)) != branch:
        hint = f"`fairlane workspaces` lists it; `git -C {place.path} checkout {branch}` goes back."
        message = f"{place.path} is on {now_on or 'no branch'}, not on {branch}"
        raise Refused(message, hint, checkouts.Unsafe.code)
    return worktree


def _commit_rest(worktree: git.Checkout, base: str | None, task: Task) -> None:
    git.refuse_nested(worktree, base)
    if git.is_dirty(worktree):
        first = (task.title or task.prompt.strip().split("\n")[0] or task.id)[:72]
        git.commit_all(worktree, f"{first}\n\nTask: {task.id}\n")


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
            more = f" and {len(files) - 3} more" if len(files) > 3 else ""
            return f"merge conflict with {base}: {', '.join(files[:3])}{more}"
        words = ("commit-tree", tree.stdout.split()[0], "-p", old, "-p", new)
        merged = git.run(repo, *words, "-m", f"Merge {branch}", settings=git.committer(repo))
    return _advance(repo, base, old, merged)


def _advance(repo: git.Checkout, base: str, old: str, new: str) -> str:
    """Advance the base branch, and its checkout if that is clean."""
    checkouts.check_branch(repo, base)
    for folder, branch in checkouts.branches_out(repo).items():
        if branch == base:
            checkout = checkouts.checkout_at(repo, folder)
            if git.is_dirty(checkout):
                return f"{base} is checked out in {folder} with changes that are not committed"
            plain = [(f"branch.{base}.mergeOptions", "")]
            git.run(checkout, "merge", "--quiet", "--no-stat", "--ff-only", new, settings=plain)
            return ""
    git.run(repo, "update-ref", f"refs/heads/{base}", new, old)
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


@dataclass(frozen=True, slots=True)
class Leftover:
    """One worktree, and why it must stay, if it must."""

    project: str
    name: str  # of the task, or of the pool's folder
    path: Path
    branch: str | None
    keep: str  # why it is not removed; empty: nothing is lost by it


def leftovers(
    home: Path, settings: Settings, projects: Mapping[str, Project], statuses: Mapping[str, Status]
) -> list[Leftover]:
    """Every worktree of every project, with the reasons not to remove it."""
    rows = []
    for project in projects.values():
        folder = folder_of(home, settings, project)
        paths = sorted(folder.iterdir()) if project.repo and folder.is_dir() else []
        rows += [_look(project, path, statuses) for path in paths]
    return rows


def clean(home: Path, leftover: Leftover, project: Project) -> None:
    """Remove one that is safe to remove, and its branch, which is merged."""
    repo = repo_of(project)
    with git.one_at_a_time(home, repo.path):
        checkouts.check_records(repo)
        worktree = checkouts.verified(repo, leftover.path)
        words = ("worktree", "remove", str(leftover.path))
        git.run(repo, *words, settings=git.programs_off(worktree))  # git looks into it once more
        if leftover.branch and is_ours(leftover.branch):
            git.run(repo, "branch", "--quiet", "-D", leftover.branch)


def _look(project: Project, path: Path, statuses: Mapping[str, Status]) -> Leftover:
    name, branch = path.name, None
    try:
        repo = repo_of(project)
        worktree = checkouts.worktree_at(repo, path)
        if worktree is None:
            return Leftover(project.name, name, path, None, "it is no worktree")
        branch = git.branch_of(worktree)
        keep = _reason(project, repo, worktree, branch, statuses.get(name))
    except checkouts.Unsafe as error:
        keep = f"not safe: {error.why}"
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
    if git.is_dirty(worktree):
        return "it has changes that are not committed"
    if inside := git.repositories_in(worktree):
        return f"it has submodules: {', '.join(map(git.shown, inside))}"
    base = project.base or "HEAD"
    if branch is not None:
        base = base_of(repo, branch)
    if branch is None or not git.is_ancestor(repo, f"refs/heads/{branch}", base):
        return f"its work is not merged into {base}"
    return ""
