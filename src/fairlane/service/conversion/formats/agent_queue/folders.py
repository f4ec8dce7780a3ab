"""agent-queue's workspaces: the folders of a project, of which each takes one task at a time."""

from __future__ import annotations

import os
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.intake.naming import name_for
from fairlane.model.errors import Invalid
from fairlane.model.record import dataclass, field
from fairlane.model.values import line
from fairlane.service.conversion.formats.agent_queue.database import Database, Row

_REFS_BYTES_MAX = 10_000_000
#: Which folder is a project's repository: your own checkout before a copy of it.
_BEST = ("link", "init", "clone", "worktree")


@dataclass(slots=True)
class Folders:
    """The workspaces of one project."""

    names: dict[str, str] = field(default_factory=dict)  # id there -> name here
    paths: list[tuple[int, Path]] = field(default_factory=list)  # how good, which
    repo: Path | None = None  # the best one that is a repository on this machine

    def add(self, row: Row, own: str) -> None:
        """One row."""
        name = base = name_for(str(row.get("name") or own))
        again = 1
        while name in self.names.values():
            again += 1
            name = f"{base}-{again}"
        self.names[own] = name
        kind = row.get("source_type")
        rank = _BEST.index(str(kind)) if kind in _BEST else len(_BEST)
        self.consider(row.get("workspace_path") or row.get("path"), rank)

    def consider(self, path: object, rank: int = len(_BEST)) -> None:
        """A folder that may be the repository."""
        try:
            written = Path(line(path)).expanduser()
        except (Invalid, RuntimeError):  # no text, or nobody's home folder
            return
        self.paths.append((rank, written))

    def choose(self) -> None:
        """Of the folders that are repositories the best one; of equal ones the first."""
        ranked = sorted(self.paths, key=lambda pair: pair[0])
        found = (path for _, path in ranked if path.is_absolute() and _git_folder(path))
        self.repo = next(found, None)

    def has_branch(self, branch: object) -> bool:
        """Whether the repository has this branch."""
        git = _git_folder(self.repo) if self.repo else None
        if git is None or not isinstance(branch, str) or not _is_plain(branch):
            return False
        if os.path.isfile(git / "refs" / "heads" / branch):  # noqa: PTH113 - false, not an error
            return True
        try:
            packed = read_file(git / "packed-refs", _REFS_BYTES_MAX).decode("utf-8", "replace")
        except OSError:
            return False
        return any(row.endswith(f" refs/heads/{branch}") for row in packed.splitlines())


def folders_of(database: Database, projects: list[str]) -> dict[str, Folders]:
    """The folders of each project; an older agent-queue has one an agent and project."""
    found = {project: Folders() for project in projects}
    for _, row in database.rows("projects"):
        found[str(row["id"])].consider(row.get("workspace_path"))
    for table, own in (("workspaces", "id"), ("agent_workspaces", "agent_id")):
        for _, row in database.rows(table):
            project = found.get(str(row.get("project_id")))
            if project is not None:
                project.add(row, str(row.get(own)))
        if database.tables.get(table):
            break
    for folders in found.values():
        folders.choose()
    return found


def _git_folder(path: Path) -> Path | None:
    """The git folder of a checkout; one whose `.git` is a file is a worktree of another."""
    git = path / ".git"
    return git if os.path.isdir(git) else None  # noqa: PTH112 - false where it may not be looked at


def _is_plain(branch: str) -> bool:
    parts = branch.split("/")
    return branch.isprintable() and all(part and not part.startswith(".") for part in parts)
