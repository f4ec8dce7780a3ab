"""Open: the folder in which a task worked, verified before anybody enters it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairlane import workspaces
from fairlane.engine.context import Context, is_here
from fairlane.model.errors import Refused
from fairlane.model.names import SCHEMA
from fairlane.model.project import Project
from fairlane.model.task import Attempt, Task
from fairlane.service.attempt_named import attempt_named, task_named
from fairlane.workspaces.checkouts import Unsafe as UnsafeWorkspace
from fairlane.workspaces.repository import Unsafe as UnsafeRepository
from fairlane.workspaces.work import folder

if TYPE_CHECKING:
    from fairlane.model.documents.work import OpenedAnswer


def open_work(context: Context, task: str, fetch: bool = False) -> OpenedAnswer:
    """Where a task works or worked; `fetch`: a copy of what git keeps, where it is gone."""
    with context.store.read() as reading:
        whole = task_named(reading, task)
        last = attempt_named(reading, task, None, code="no_work")
        here = [row for row in reading.attempts(task) if is_here(row)]
        project = reading.table(Project)[whole.project]
    if not here:
        raise elsewhere(task, last.host or last.worker or "another machine")
    attempt = here[-1]
    path = _path(context, project, whole, attempt)
    branch, head = (_text(attempt, name) for name in ("branch", "head"))
    try:
        if fetch and not path.is_dir() and project.repo is not None and head is not None:
            path = folder.copy(context.home, project, task, head)
        else:
            folder.check(context.home, project, path, branch, head)
    except UnsafeRepository as error:
        raise Refused(error.message, error.hint, UnsafeWorkspace.code) from error
    return {
        "schema": SCHEMA,
        "task": task,
        "attempt": attempt.number,
        "path": str(path),
        "branch": branch,
        "runs_by_itself": folder.runs_by_itself(path),
    }


def elsewhere(task: str, where: str) -> Refused:
    """The folder of a task is not on this machine."""
    hint = f"`fairlane diff {task}` shows what it changed; `fairlane open {task}` works there."
    return Refused(f"the folder of {task} is on {where}", hint, "elsewhere")


def _path(context: Context, project: Project, task: Task, attempt: Attempt) -> Path:
    path = workspaces.path_of(context.home, context.settings, project, task.id, attempt.workspace)
    recorded = _text(attempt, "path")
    return path if recorded is None or path.is_dir() else Path(recorded)


def _text(attempt: Attempt, name: str) -> str | None:
    value = (attempt.work or {}).get(name)
    return value if isinstance(value, str) and value else None
