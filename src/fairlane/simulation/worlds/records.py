"""Records: tasks and projects as those who add them would write them."""

from __future__ import annotations

from collections.abc import Container

from fairlane.model.instant import show_duration, show_instant
from fairlane.model.project import Project
from fairlane.model.record import changed
from fairlane.model.task import Task
from fairlane.policy.policy import Policy

#: The fields of a task on which its course depends; prompts, files and commands are left out.
FIELDS = (
    "project", "kind", "agent", "priority", "group", "parallel", "locks", "workspace", "pool",
    "labels", "estimate_tokens", "timeout", "max_attempts", "not_before",
)  # fmt: skip
_BLANK = Task("")


def record_of(task: Task, known: Container[str]) -> dict[str, object]:
    """The record that would add a task; `known`: the tasks that it may name."""
    record: dict[str, object] = {"id": task.id}
    for name in FIELDS:
        value = getattr(task, name)
        if value != getattr(_BLANK, name) or name in ("project", "kind"):
            record[name] = _written(name, value)
    needs = [need for need in task.needs if need in known]
    if needs:
        record["needs"] = needs
    if task.parent is not None and task.parent in known:
        record["parent"] = task.parent
    return record


def _written(name: str, value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, int) and name == "timeout":
        return show_duration(value)
    return show_instant(value) if isinstance(value, int) and name == "not_before" else value


def without_repository(project: Project) -> Project:
    """A project of which a simulation touches no file: nothing of its repository is left."""
    blank = Project(project.name)
    names = ("repo", "base", "prefix", "template", "pr", "merge", "setup", "setup_files", "protect")
    return changed(project, **{name: getattr(blank, name) for name in names})


def project_values(project: Project) -> dict[str, object]:
    """The keys of a project that a simulation knows."""
    values: dict[str, object] = {"weight": project.weight}
    if project.max_in_flight is not None:
        values["max_in_flight"] = project.max_in_flight
    if project.budgets:
        values["budgets"] = Policy.budget_rows(project.budgets)
    if project.status != "active":
        values["status"] = project.status
    if project.agent is not None:
        values["agent"] = project.agent
    if project.workspaces is not None:
        values["workspaces"] = list(project.workspaces)
    return values
