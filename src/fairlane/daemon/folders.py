"""Run folders: `runs/<task>/<attempt>/`, one for every attempt, and the artifact folders."""

from __future__ import annotations

from pathlib import Path

from fairlane.service import alive
from fairlane.service.desk import Desk
from fairlane.store.base import Attempt


def run_folder(desk: Desk, attempt: Attempt) -> Path:
    """Where one attempt leaves its traces."""
    return alive.run_folder(desk.home, attempt)


def artifact_folder(desk: Desk, task: str) -> Path:
    """Where a task leaves what its children need."""
    return desk.home / "artifacts" / task


def make(folder: Path) -> Path:
    """The folder, readable by the owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
