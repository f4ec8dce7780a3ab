"""What an attempt changed, as an operation, and as `show` tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fairlane import workspaces
from fairlane.engine.context import Context, is_here
from fairlane.model.errors import FairlaneError, NotFound, Refused
from fairlane.model.instant import show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import Project
from fairlane.model.task import Attempt, Task
from fairlane.service.attempt_named import attempt_named, task_named
from fairlane.workspaces.clone import COMMIT
from fairlane.workspaces.work.look import Commit, Diff, Wanted, commits, live_diff, recorded_diff

if TYPE_CHECKING:
    from fairlane.model.documents import work as documents


def diff(
    context: Context,
    task: str,
    attempt: int | None = None,
    files: Sequence[str] = (),
    carried: bool = False,
    stat: bool = False,
) -> documents.DiffAnswer:
    """What an attempt changed: its own work, or with what it started from."""
    with context.store.read() as reading:
        whole = task_named(reading, task)
        row = attempt_named(reading, task, attempt)
        project = reading.table(Project).get(whole.project)
    found = None if project is None else _diff(context, project, whole, row, files, carried, stat)
    if found is None:
        raise no_work(task, row)
    return {
        "schema": SCHEMA,
        "task": task,
        "attempt": row.number,
        "start": found.start,
        "head": found.head,
        "files": [
            {
                "path": change.path,
                "old_path": change.old_path,
                "change": change.change,
                "added": change.added,
                "removed": change.removed,
                "binary": change.binary,
                "patch": patch,
            }
            for change, patch in found.files
        ],
        "truncated": found.truncated,
    }


def no_work(task: str, attempt: Attempt) -> NotFound:
    """Nothing is known of what an attempt changed."""
    hint = f"Work in a repository is recorded: `fairlane show {task}` tells what came of it."
    return NotFound(f"attempt {attempt.number} of {task} has no recorded work", hint, "no_work")


def _diff(
    context: Context,
    project: Project,
    task: Task,
    attempt: Attempt,
    files: Sequence[str],
    carried: bool,
    stat: bool,
) -> Diff | None:
    wanted = Wanted(files, stat, carried)
    if attempt.ended_at is None:
        if project.repo is None:
            return None
        if not is_here(attempt):
            where = attempt.host or attempt.worker or "another machine"
            hint = "Its diff is recorded when it ends."
            message = f"attempt {attempt.number} of {task.id} runs on {where}"
            raise Refused(message, hint, "elsewhere")
        confined = context.settings.is_confined(attempt.agent, attempt.project)
        where_to = (context.home, context.settings, project, task, attempt.workspace, confined)
        return live_diff(*where_to, wanted)
    record = attempt.work or {}
    start, base, head = (_commit(record, name) for name in ("start", "base_commit", "head"))
    if project.repo is None or start is None or head is None:
        return None
    return recorded_diff(context.home, project, start, base, head, wanted)


def _commit(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) and COMMIT.fullmatch(value) else None


def work_of(
    context: Context, task: Task, attempts: Sequence[Attempt], project: Project
) -> documents.WorkDocument | None:
    """The work of a task in the repository of its project; None: there is none."""
    for attempt in reversed(attempts):
        if attempt.work is not None and attempt.work.get("head"):
            return _recorded(context, attempt, attempt.work, project)
    last = attempts[-1] if attempts else None
    if last is None or not is_here(last) or workspaces.is_shared(context.settings, project):
        return None
    where = (context.home, context.settings, project, task.id, last.workspace)
    return {
        "repo": str(project.repo),
        "branch": f"fairlane/{task.id}",
        "base": task.base or project.base,
        "start": None,
        "head": None,
        "path": str(workspaces.path_of(*where)),
        "worker": last.worker,
        "dirty": False,
        "files": [],
        "more_files": 0,
        "commits": [],
    }


def _recorded(
    context: Context, attempt: Attempt, record: Mapping[str, object], project: Project
) -> documents.WorkDocument:
    work = cast("workspaces.WorkRecord", record)
    return {
        "repo": str(project.repo),
        "branch": work["branch"],
        "base": work["base"],
        "start": work["start"],
        "head": work["head"],
        "path": work["path"],
        "worker": attempt.worker,
        "dirty": work["dirty"],
        "files": [{**row} for row in work["files"]],
        "more_files": work["more"],
        "commits": _commits(context.home, project, work["start"], work["head"]),
    }


def _commits(
    home: Path, project: Project, start: str | None, head: str | None
) -> list[documents.CommitDocument]:
    """None where the repository is away: `show` tells the rest."""
    if start is None or head is None:
        return []
    try:
        found = _between(home, project.name, str(project.repo), project.hooks, start, head)
    except (FairlaneError, OSError):
        return []
    return [
        {"id": row.id, "subject": row.subject, "author": row.author, "at": show_instant(row.at)}
        for row in found
    ]


@lru_cache(maxsize=256)
def _between(
    home: Path, name: str, repo: str, hooks: str, start: str, head: str
) -> tuple[Commit, ...]:
    """What lies between two commits never changes; pages ask for it again and again."""
    return tuple(commits(home, Project(name, repo=repo, hooks=hooks), start, head))
