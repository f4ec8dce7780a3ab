"""Folders: `runs/<task>/<attempt>/` and those of artifacts; what their disks lack."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile

from fairlane.model.errors import MISSING, ON_DISK
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


def missing(error: OSError, folder: Path) -> str:
    """What our side lacks, on which disk, or for which file; empty: the error has another cause.

    `folder` is where it happened, unless the error names a place itself.
    """
    number = error.errno or 0
    if number not in ON_DISK:
        return MISSING.get(number, "")
    place = Path(os.fsdecode(error.filename)) if error.filename else folder
    known = next(each for each in (place, *place.parents) if each.exists())
    what = "no file can be made (inodes are used up)" if _no_inode(known) else MISSING[number]
    return f"{what} on the disk of {place}"


def missing_now(folder: Path) -> str:
    """What the disk of a folder lacks at this moment; empty: something can be written there."""
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return missing(OSError(error.errno, error.strerror), folder)
    return ""


def _no_inode(folder: Path) -> bool:
    found = os.statvfs(folder)
    return found.f_files > 0 and found.f_favail == 0
