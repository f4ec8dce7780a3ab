"""Record: what an attempt made of its branch, kept by git whatever becomes of the branch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NotRequired, TypedDict

from fairlane.model.errors import FairlaneError, Refused
from fairlane.model.project import Project
from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces import carry, checkouts, clone, git, tree, upload
from fairlane.workspaces.place import Place, place_of
from fairlane.workspaces.work.beside import look_beside
from fairlane.workspaces.work.changes import Change, Letter, changes
from fairlane.workspaces.work.keep_refs import keep
from fairlane.workspaces.work.protect import Protection, follow_links
from fairlane.workspaces.work.reading import reader_of
from fairlane.workspaces.work.snapshot import snapshot
from fairlane.workspaces.work.take_in import take_in

#: Most files that a record names.
FILES_MAX = 1000


class CarriedWork(TypedDict):
    """The work of another task from which an attempt started."""

    task: str
    head: str


class FileRecord(TypedDict):
    """One file that an attempt changed."""

    path: str
    added: int
    removed: int
    change: Letter
    binary: bool


class WorkRecord(TypedDict):
    """What one attempt made of its branch."""

    branch: str
    base: str
    base_commit: str | None
    start: str | None
    head: str | None  # of a failed attempt with what it left uncommitted
    path: str
    dirty: bool
    files: list[FileRecord]
    more: int  # files that are not named
    carried: list[CarriedWork]
    protected: list[str]
    problem: NotRequired[str]  # what could not be recorded


class NotTakenIn(Refused):
    """A success whose work could not be taken in; `work` is what was recorded all the same."""

    def __init__(self, error: FairlaneError, work: WorkRecord | None) -> None:
        super().__init__(error.message, error.hint, error.error_code)
        self.work = work


def keep_work(
    home: Path,
    settings: Settings,
    project: Project,
    task: Task,
    workspace: str | None,
    sandboxed: bool = False,
    *,
    attempt: int,
    success: bool,
) -> WorkRecord | None:
    """Take in what an attempt left, record it, and let git keep it; None: it has no branch.

    After a success the rest is committed, and `NotTakenIn` says what is wrong. After anything else
    nothing changes but the reference that keeps the work, and a problem is in the record.
    """
    if project.repo is None:
        return None
    try:
        place = place_of(home, settings, project, task, workspace, sandboxed)
    except FairlaneError as error:
        if success:
            raise NotTakenIn(error, None) from error
        return None
    if place.repo is None or place.branch is None:
        return None
    taken, wrong = None, None
    if success:
        try:
            taken = take_in(home, settings, place, task)
        except FairlaneError as error:
            wrong = error
    work = _blank(place, place.repo, place.branch)
    with _noted(work):
        _record(work, home, place, task.id, attempt, taken)
    with _noted(work):
        _compare(work, place.repo, protection_of(project, task), taken)
    if wrong is not None:
        raise NotTakenIn(wrong, work) from wrong
    return work


@contextmanager
def _noted(work: WorkRecord) -> Iterator[None]:
    """A problem is in the record; what follows is recorded all the same."""
    try:
        yield
    except (FairlaneError, OSError) as error:
        what = error.message if isinstance(error, FairlaneError) else str(error)
        work.setdefault("problem", what)


def _record(
    work: WorkRecord, home: Path, place: Place, task: str, attempt: int, taken: git.Checkout | None
) -> None:
    """From where to where the work goes, and that git keeps both.

    `taken`: the work tree whose work was taken in; of any other the rest is kept, too.
    """
    repo = place.repo
    assert repo is not None
    if taken is not None:
        work["dirty"] = tree.is_dirty(taken)
        work["start"] = start_of(repo, place, work["head"])
        _keep(home, repo, task, attempt, work)
        return
    with _work_tree(home, place, repo) as (at, head):
        work["start"] = start_of(repo, place, head)
        work["head"] = head or work["start"]
        rest = _rest(at, work["head"], attempt)
        work["head"], work["dirty"] = rest or work["head"], rest is not None
        _keep(home, repo, task, attempt, work)


def _keep(home: Path, repo: git.Checkout, task: str, attempt: int, work: WorkRecord) -> None:
    if work["start"] is not None and work["head"] is not None:
        with git.one_at_a_time(home, repo):
            keep(repo, task, attempt, work["start"], work["head"])


def mark_again(
    home: Path,
    settings: Settings,
    project: Project,
    task: Task,
    workspace: str | None,
    sandboxed: bool,
    work: WorkRecord,
) -> WorkRecord:
    """The record of a success, with protected files that differ in its work tree by now."""
    place = place_of(home, settings, project, task, workspace, sandboxed)
    if place.repo is None or work["start"] is None or work["head"] is None:
        return work
    at = (clone if place.mode == "clone" else checkouts).verified(place.repo, place.path)
    protection = protection_of(project, task)
    follow_links(reader_of(place.repo), work["start"], protection)
    look_beside(at, work["start"], work["head"], protection)
    return {**work, "protected": list(dict.fromkeys((*work["protected"], *protection.paths)))}


def _compare(
    work: WorkRecord, repo: git.Checkout, protection: Protection, taken: git.Checkout | None
) -> None:
    """Which files the work has changed, and which of a success lie beside it."""
    if work["start"] is not None and work["head"] is not None:
        both = work["start"], work["head"]
        reader = reader_of(repo)
        follow_links(reader, work["start"], protection)
        rows, work["more"] = changes(reader, *both, FILES_MAX, protection.look)
        work["files"] = [file_record(row) for row in rows]
        work["protected"] = protection.paths
        if taken is not None:
            look_beside(taken, *both, protection)


def _blank(place: Place, repo: git.Checkout, branch: str) -> WorkRecord:
    base, start = place.base or "HEAD", carry.start_of(repo, branch)
    carried = start.carried if start is not None else ()
    return {
        "branch": branch,
        "base": base,
        "base_commit": git.commit_of(repo, base),
        "start": None,
        "head": git.commit_of(repo, f"refs/heads/{branch}"),
        "path": str(place.path),
        "dirty": False,
        "files": [],
        "more": 0,
        "carried": [{"task": task, "head": head} for task, head in carried],
        "protected": [],
    }


@contextmanager
def _work_tree(
    home: Path, place: Place, repo: git.Checkout
) -> Iterator[tuple[git.Checkout, str | None]]:
    """The work tree, and the last commit of whatever it has checked out, which git has."""
    branch = place.branch or ""
    if place.mode != "clone":
        at = checkouts.verified(repo, place.path)
        yield at, git.commit_of(at, "HEAD") or git.commit_of(repo, f"refs/heads/{branch}")
        return
    at = clone.verified(repo, place.path)
    with git.one_at_a_time(home, repo):
        head = clone.fetched(at, repo, branch)
    try:
        yield at, head
    finally:
        with git.one_at_a_time(home, repo):
            upload.drop(repo, head)


def start_of(repo: git.Checkout, place: Place, head: str | None) -> str | None:
    """The commit from which the work of this task starts: as recorded, or where it left its base.

    The latter also where an agent that carries no work has taken in what is new in the base.
    """
    known = carry.start_of(repo, place.branch or "")
    base = git.commit_of(repo, place.base or "HEAD")
    if base is None or head is None:
        return known.commit if known is not None else base
    words = ("merge-base", base, head)
    left = git.call(repo, *words, code_ok=(0, 1, 128)).stdout.strip() or base
    if known is None:
        return left
    is_newer = not known.carried and left != head and git.is_ancestor(repo, known.commit, left)
    return left if is_newer else known.commit


def _rest(at: git.Checkout, head: str | None, attempt: int) -> str | None:
    """A commit of what is not committed; None: nothing is."""
    with snapshot(at, head) as (found, view):
        if head is not None and found == git.run(view, "rev-parse", f"{head}^{{tree}}"):
            return None
        message = f"Not committed by attempt {attempt}"
        words = ("commit-tree", found, *(("-p", head) if head else ()), "-m", message)
        return git.run(view, *words, settings=git.committer(at))


def protection_of(project: Project, task: Task) -> Protection:
    """What is protected in the work of a task."""
    checks = (*project.checks, *task.checks)
    return Protection(project.protect, [check.argv for check in checks])


def file_record(row: Change) -> FileRecord:
    """A change as documents have it."""
    return {
        "path": row.path,
        "added": row.added,
        "removed": row.removed,
        "change": row.change,
        "binary": row.binary,
    }
