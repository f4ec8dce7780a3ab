"""Where it works: worktrees, clones, pools, the repository; never two attempts in one folder."""

from __future__ import annotations

from fairlane.workspaces.finish import finish
from fairlane.workspaces.leftovers import Leftover, clean, leftovers
from fairlane.workspaces.place import SHARED, Place, is_shared, mode_for, path_of, prepare
from fairlane.workspaces.repository import forget

__all__ = [
    "SHARED",
    "Leftover",
    "Place",
    "clean",
    "finish",
    "forget",
    "is_shared",
    "leftovers",
    "mode_for",
    "path_of",
    "prepare",
]
