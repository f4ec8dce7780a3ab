"""Workspaces as an operation: list what is there, remove what is safe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlane import workspaces
from fairlane.model.errors import FairlaneError
from fairlane.model.project import Project
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.store.base import Attempt
from fairlane.workspaces import Leftover


def listing(desk: Desk) -> dict[str, Any]:
    """Every worktree, and why it must stay, if it must."""
    rows = [_document(each) for each in _found(desk)]
    return {"schema": SCHEMA, "workspaces": rows}


def clean(desk: Desk, dry_run: bool = False) -> dict[str, Any]:
    """Remove worktrees whose work is committed and merged, and whose task has ended."""
    with desk.store.read() as reading:
        projects = reading.projects()
    removed, refused = [], []
    for each in _found(desk):
        if each.keep:
            continue
        try:
            if not dry_run:
                workspaces.clean(desk.home, each, projects[each.project])
            removed.append(_document(each))
        except FairlaneError as error:  # git knows a reason of its own; the others go on
            refused.append(_document(replace(each, keep=error.message)))
    return {"schema": SCHEMA, "removed": removed, "refused": refused, "dry_run": dry_run}


def _found(desk: Desk) -> list[Leftover]:
    with desk.store.read() as reading:
        projects = reading.projects()
        found = workspaces.leftovers(desk.home, desk.settings, projects, {})
        statuses = reading.statuses(each.name for each in found)
        taken = {_path(desk, projects, each): each.task for each in reading.open_attempts()}
    rows = workspaces.leftovers(desk.home, desk.settings, projects, statuses)
    return [
        replace(each, keep=f"{taken[each.path]} works in it") if each.path in taken else each
        for each in rows
    ]


def _path(desk: Desk, projects: Mapping[str, Project], attempt: Attempt) -> Path:
    project = projects[attempt.project]
    return workspaces.path_of(desk.home, desk.settings, project, attempt.task, attempt.workspace)


def _document(each: Leftover) -> dict[str, Any]:
    return {
        "project": each.project,
        "name": each.name,
        "path": str(each.path),
        "branch": each.branch,
        "keep": each.keep or None,
    }
