"""Shortage: what this machine lacks when it cannot do its part, in words."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile

from fairlane.model.errors import MISSING, ON_DISK


def shortage(error: OSError, folder: Path) -> str:
    """What our side lacks, on which disk, or for which file; empty: the error has another cause.

    `folder` is where it happened, unless the error names a path itself.
    """
    number = error.errno or 0
    if number not in ON_DISK:
        return MISSING.get(number, "")
    place = Path(os.fsdecode(error.filename)) if error.filename else folder
    existing = next(path for path in (place, *place.parents) if path.exists())
    disk = os.statvfs(existing)
    used_up = disk.f_files > 0 and disk.f_favail == 0
    what = "no file can be made (inodes are used up)" if used_up else MISSING[number]
    return f"{what} on the disk of {place}"


def shortage_now(folder: Path) -> str:
    """What the disk of a folder lacks at this moment; empty: something can be written there."""
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return shortage(OSError(error.errno, error.strerror), folder)
    return ""
