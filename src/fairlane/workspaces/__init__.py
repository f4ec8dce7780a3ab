"""Where it works: worktrees, clones, pools, the repository; never two attempts in one folder."""

from __future__ import annotations

from fairlane.workspaces.carry import PROBLEMS as CARRY_PROBLEMS
from fairlane.workspaces.finish import MergeRecord, deliver, problem_of
from fairlane.workspaces.leftovers import Leftover, clean, leftovers
from fairlane.workspaces.place import SHARED, Place, is_shared, mode_for, path_of, prepare
from fairlane.workspaces.repository import forget
from fairlane.workspaces.work import NotTakenIn, WorkRecord, keep_work, mark_again

__all__ = [
    "CARRY_PROBLEMS",
    "SHARED",
    "Leftover",
    "MergeRecord",
    "NotTakenIn",
    "Place",
    "WorkRecord",
    "clean",
    "deliver",
    "forget",
    "is_shared",
    "keep_work",
    "leftovers",
    "mark_again",
    "mode_for",
    "path_of",
    "prepare",
    "problem_of",
]
