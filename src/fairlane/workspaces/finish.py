"""Finish a success: its work is kept, merged into the base or offered; a problem loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from fairlane.model.errors import FairlaneError, listed
from fairlane.model.project import Project
from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces import carry, checkouts, git, plain_files, tree
from fairlane.workspaces.offer import offer
from fairlane.workspaces.place import Place, place_of
from fairlane.workspaces.work import WorkRecord
from fairlane.workspaces.work.changes import changes
from fairlane.workspaces.work.protect import Protection, follow_links
from fairlane.workspaces.work.reading import reader_of
from fairlane.workspaces.work.record import protection_of


class MergeHold(TypedDict):
    """Why a merge waits."""

    gate: str
    code: str
    reason: str
    until: str | None


class MergeRecord(TypedDict):
    """What became of the merge of an attempt's work."""

    state: str  # none, merged, offered, waiting; conflict and failed park the task
    detail: str
    commit: str | None
    url: str | None
    carries: list[str]  # tasks whose work it started from, and that the base does not have
    files: list[str]
    hold: MergeHold | None


def deliver(
    home: Path,
    settings: Settings,
    project: Project,
    task: Task,
    workspace: str | None,
    sandboxed: bool,
    work: WorkRecord,
) -> MergeRecord:
    """Keep, merge or offer work that was kept; what went wrong is in the answer."""
    if task.merge == "keep" or work["head"] == work["start"]:
        return _record("none")
    try:
        place = place_of(home, settings, project, task, workspace, sandboxed)
        if place.repo is None or place.branch is None:
            return _record("none")
        if task.merge == "merge":
            with git.one_at_a_time(home, place.repo):
                checked = not task.no_checks and bool(project.checks or task.checks)
                held = _held(place, place.repo, work, checked)
                return held or _merge(place, place.repo, work, protection_of(project, task))
        return _offered(place, place.repo, project, task, work)
    except FairlaneError as error:
        return _record("failed", error.in_full(task.id))


def problem_of(merge: MergeRecord) -> str:
    """Why the task is parked; empty: it is done."""
    return merge["detail"] if merge["state"] in ("conflict", "failed") else ""


def _record(state: str, detail: str = "") -> MergeRecord:
    return {
        "state": state, "detail": detail, "commit": None, "url": None, "carries": [], "files": [],
        "hold": None,
    }  # fmt: skip


def _held(place: Place, repo: git.Checkout, work: WorkRecord, checked: bool) -> MergeRecord | None:
    """Why this work is not merged by itself; None: nothing holds it.

    Work of another task lands by that task alone: it may have been kept on purpose. `checked`: it
    has checks, which ran with what is not committed.
    """
    base, files = place.base or "HEAD", list(work["protected"])
    commit = git.commit_of(repo, f"refs/heads/{base}")
    names = carry.not_in_base(repo, place.branch or "", commit) if commit is not None else ()
    if names:
        reason = f"it started from work that {base} does not have: {listed(names, 5)}"
        return _waiting("carries", reason, names, files)
    if files:
        return _unapproved(files)
    if work["dirty"] and checked:
        return _waiting("approval", "its checks ran with changes that are not committed", (), [])
    return None


def _unapproved(files: list[str]) -> MergeRecord:
    shown = listed([plain_files.shown(name) for name in files], 5)
    return _waiting("approval", f"it changes protected files: {shown}", (), files)


def _waiting(code: str, reason: str, carries: Sequence[str], files: list[str]) -> MergeRecord:
    hold: MergeHold = {"gate": "merge", "code": code, "reason": reason, "until": None}
    record = _record("waiting", reason)
    return {**record, "carries": list(carries), "files": files, "hold": hold}


def _merge(
    place: Place, repo: git.Checkout, work: WorkRecord, protection: Protection
) -> MergeRecord:
    """Into the base branch, without a checkout where nobody has it checked out.

    What was kept and checked is merged: a check can have moved the branch since. What that changes
    in the base counts, too: an agent can have merged the base and thrown away what was there.
    """
    base, branch = place.base or "HEAD", place.branch or ""
    old, new = git.commit_of(repo, f"refs/heads/{base}"), work["head"]
    if old is None or new is None:
        return _record("failed", f"there is no branch {base} to merge into")
    if git.is_ancestor(repo, new, old):
        return {**_record("merged"), "commit": old}
    merged = found = new
    is_forward = git.is_ancestor(repo, old, new)
    if not is_forward:
        options = ("--write-tree", "--name-only", "--no-messages")
        tree = git.call(repo, "merge-tree", *options, old, new, code_ok=(0, 1))
        if tree.returncode:
            files = tree.stdout.splitlines()[1:]
            conflict = _record("conflict", f"merge conflict with {base}: {listed(files, 3)}")
            return {**conflict, "files": files}
        found = tree.stdout.split()[0]
    reader = reader_of(repo)
    follow_links(reader, old, protection)
    changes(reader, old, found, 0, protection.look)
    if protection.paths:
        return _unapproved(protection.paths)
    if not is_forward:
        words = ("commit-tree", found, "-p", old, "-p", new)
        merged = git.run(repo, *words, "-m", f"Merge {branch}", settings=git.committer(repo))
    if problem := _advance(repo, base, old, merged):
        return _record("failed", problem)
    return {**_record("merged"), "commit": merged}


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


def _offered(
    place: Place, repo: git.Checkout, project: Project, task: Task, work: WorkRecord
) -> MergeRecord:
    if not project.pr:
        return _record("failed", f"project {project.name} has no command for pull requests")
    return {**_record("offered"), "url": offer(place, repo, work["head"], project, task)}
