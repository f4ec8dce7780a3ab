"""Workspaces as an operation: list what is there, remove what is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane import workspaces
from fairlane.engine.context import Context
from fairlane.model.errors import FairlaneError
from fairlane.model.names import SCHEMA
from fairlane.model.project import Project
from fairlane.model.record import replace
from fairlane.workspaces import Leftover

if TYPE_CHECKING:
    from fairlane.model.documents import admin


def listing(context: Context) -> admin.WorkspacesAnswer:
    """Every worktree, and why it must stay, if it must."""
    rows = [_document(leftover) for leftover in _leftovers(context)]
    return {"schema": SCHEMA, "workspaces": rows}


def clean(context: Context, dry_run: bool = False) -> admin.WorkspacesCleanedAnswer:
    """Remove worktrees whose work is committed and merged, and whose task has ended."""
    with context.store.read() as reading:
        projects = reading.table(Project)
    removed, refused = [], []
    for leftover in _leftovers(context):
        if leftover.keep:
            continue
        try:
            if not dry_run:
                workspaces.clean(context.home, leftover, projects[leftover.project])
            removed.append(_document(leftover))
        except FairlaneError as error:  # git knows a reason of its own; the others go on
            refused.append(_document(replace(leftover, keep=error.message)))
    return {"schema": SCHEMA, "removed": removed, "refused": refused, "dry_run": dry_run}


def _leftovers(context: Context) -> list[Leftover]:
    with context.store.read() as reading:
        projects = reading.table(Project)
        unjudged = workspaces.leftovers(context.home, context.settings, projects, {})
        statuses = reading.statuses(leftover.name for leftover in unjudged)
        holders = {}
        for row in reading.open_attempts():
            project = projects[row.project]
            path = workspaces.path_of(
                context.home, context.settings, project, row.task, row.workspace
            )
            holders[path] = row.task
    return [
        replace(leftover, keep=f"{holders[leftover.path]} works in it")
        if leftover.path in holders
        else leftover
        for leftover in workspaces.leftovers(context.home, context.settings, projects, statuses)
    ]


def _document(leftover: Leftover) -> admin.WorkspaceDocument:
    return {
        "project": leftover.project,
        "name": leftover.name,
        "path": str(leftover.path),
        "branch": leftover.branch,
        "keep": leftover.keep or None,
    }
