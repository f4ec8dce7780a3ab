"""Artifacts: paths that must exist before a task starts, and where they are looked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fairlane.model.errors import Invalid, Refused
from fairlane.model.project import Project


def folder_for(home: Path, parent: str | None, project: Project) -> Path | None:
    """The parent's artifact folder, or the project's repository where there is no parent."""
    if parent is not None:
        return home / "artifacts" / parent
    return Path(project.repo).expanduser() if project.repo else None


def missing(
    paths: Iterable[str], home: Path, parent: str | None, project: Project
) -> tuple[str, ...]:
    """Those that do not exist now; one that leaves its folder through a link is refused."""
    folder = folder_for(home, parent, project)
    if folder is None:
        raise Refused(
            f"artifacts have no folder: project {project.name} has no repository",
            f"Name a parent, or set one: fairlane project set {project.name} --repo DIR.",
        )
    inside = folder.resolve()
    absent = []
    for path in paths:
        found = (inside / path).resolve()
        if not found.is_relative_to(inside):
            raise Invalid(f"artifact {path!r} leaves its folder through a link to {found}")
        if not found.exists():
            absent.append(path)
    return tuple(absent)
