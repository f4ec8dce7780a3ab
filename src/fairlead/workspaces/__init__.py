"""Where it works: worktrees, pools, the repository itself; never two attempts in one folder."""

from __future__ import annotations

from fairlead.workspaces.finish import finish
from fairlead.workspaces.leftovers import Leftover, clean, leftovers
from fairlead.workspaces.place import Place, prepare

__all__ = ["Leftover", "Place", "clean", "finish", "leftovers", "prepare"]
