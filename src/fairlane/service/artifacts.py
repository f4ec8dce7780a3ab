"""Artifacts: files that must exist before a task starts; noticed when they appear."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fairlane.model.task import Task
from fairlane.service.desk import Desk
from fairlane.service.journal import Journal
from fairlane.store.base import Filter, Reading

#: How many waiting tasks are looked at in one round.
LOOKED_AT_MAX = 1000


def folder_of(desk: Desk, reading: Reading, task: Task) -> Path | None:
    """Where a task's artifacts are: its parent's folder, or its project's repository."""
    if task.parent is not None:
        return desk.home / "artifacts" / task.parent
    project = reading.projects().get(task.project)
    return Path(project.repo) if project and project.repo else None


def missing(folder: Path | None, artifacts: tuple[str, ...]) -> tuple[str, ...]:
    """Those that do not exist, or lie outside their folder once links are followed."""
    if folder is None:
        return artifacts
    root = folder.resolve()
    found = ((name, (root / name).resolve()) for name in artifacts)
    return tuple(name for name, path in found if not path.is_relative_to(root) or not path.exists())


def notice(desk: Desk, journal: Journal) -> None:
    """Tasks whose artifacts have appeared no longer wait for them."""
    waiting = journal.tx.listing(Filter(wait="artifact"), limit=LOOKED_AT_MAX)
    for task, _, _ in waiting:
        still = missing(folder_of(desk, journal.tx, task), task.artifacts)
        if still != task.artifacts_missing:
            journal.keep(replace(task, artifacts_missing=still))
    if waiting:
        journal.close()
