"""Where it works: worktrees, pools, the repository itself; never two attempts in one folder."""

from __future__ import annotations

from fairlane.workspaces.finish import Leftover, clean, finish, leftovers
from fairlane.workspaces.place import SHARED, Place, is_shared, path_of, prepare

__all__ = [
    "SHARED",
    "Leftover",
    "Place",
    "clean",
    "finish",
    "is_shared",
    "leftovers",
    "path_of",
    "prepare",
]
