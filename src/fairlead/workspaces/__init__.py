"""Where it works: worktrees, pools, the repository itself; never two attempts in one folder."""

from __future__ import annotations

from fairlead.workspaces.finish import finish
from fairlead.workspaces.leftovers import Leftover, clean, leftovers
from fairlead.workspaces.place import SHARED, Place, is_shared, path_of, prepare

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
