"""Workspaces as an operation: list what is there, remove what is safe."""

from __future__ import annotations

from typing import Any

from fairlead import workspaces
from fairlead.service import SCHEMA
from fairlead.service.desk import Desk
from fairlead.workspaces import Leftover


def listing(desk: Desk) -> dict[str, Any]:
    """Every worktree, and why it must stay, if it must."""
    rows = [_document(each) for each in _found(desk)]
    return {"schema": SCHEMA, "workspaces": rows}


def clean(desk: Desk, dry_run: bool = False) -> dict[str, Any]:
    """Remove worktrees whose work is committed and merged, and whose task has ended."""
    with desk.store.read() as reading:
        projects = reading.projects()
    safe = [each for each in _found(desk) if not each.keep]
    for each in () if dry_run else safe:
        workspaces.clean(desk.home, each, projects[each.project])
    removed = [_document(each) for each in safe]
    return {"schema": SCHEMA, "removed": removed, "dry_run": dry_run}


def _found(desk: Desk) -> list[Leftover]:
    with desk.store.read() as reading:
        projects = reading.projects()
        found = workspaces.leftovers(desk.home, desk.settings, projects, {})
        statuses = reading.statuses(each.name for each in found)
    return workspaces.leftovers(desk.home, desk.settings, projects, statuses)


def _document(each: Leftover) -> dict[str, Any]:
    return {
        "project": each.project,
        "name": each.name,
        "path": str(each.path),
        "branch": each.branch,
        "keep": each.keep or None,
    }
