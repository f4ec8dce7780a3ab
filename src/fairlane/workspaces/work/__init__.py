"""What an attempt changed: recorded, kept by git, and read as a diff."""

from __future__ import annotations

from fairlane.workspaces.work.record import (
    CarriedWork,
    FileRecord,
    NotTakenIn,
    WorkRecord,
    keep_work,
    mark_again,
)

__all__ = ["CarriedWork", "FileRecord", "NotTakenIn", "WorkRecord", "keep_work", "mark_again"]
