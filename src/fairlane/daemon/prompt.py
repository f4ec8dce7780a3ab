"""Prompt: what the agent is told: the template filled, and the last error on a fresh retry."""

from __future__ import annotations

from fairlane.intake import templates
from fairlane.model.project import Project
from fairlane.model.task import Task
from fairlane.service.desk import Desk
from fairlane.store.base import Attempt

#: What an agent is told that goes on with its session.
GO_ON = "Your last attempt ended before the work was done{why}. Go on from where you were."


def prompt_of(
    desk: Desk,
    task: Task,
    attempt: Attempt,
    project: Project,
    before: list[Attempt],
    resumed: bool,
) -> str:
    """The whole prompt of one attempt."""
    error = next((each.detail for each in reversed(before) if each.detail), "")
    if resumed:
        return GO_ON.format(why=f" ({error})" if error else "")
    text = _filled(desk, task, attempt, project, error)
    failed = [each for each in before if each.outcome in ("failed", "lost", "launch_failed")]
    if failed and error and "{error}" not in text:
        text += f"\n\nAn earlier attempt at this failed: {error}\n"
    return text


def _filled(desk: Desk, task: Task, attempt: Attempt, project: Project, error: str) -> str:
    name = task.template or project.template
    if name is None or name == templates.NONE:
        return task.prompt or task.title
    text = templates.find(name, project, desk.home)
    values = {
        "id": task.id,
        "title": task.title,
        "prompt": task.prompt,
        "project": task.project,
        "kind": task.kind,
        "group": task.group or "",
        "parent": task.parent or "",
        "agent": task.agent or "",
        "base": task.base or project.base or "",
        "workspace": attempt.workspace or "",
        "priority": str(task.priority),
        "attempt": str(attempt.number),
        "error": error,
        "artifacts": " ".join(task.artifacts),
    }
    return templates.render(text, values, task.vars)
