"""Fairlane: the scheduler for coding agents.

The pure planner needs nothing but the standard library:

    from fairlane import Policy, Snapshot, Task, plan

Names are imported when they are first used, so `import fairlane` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fairlane.model.names import VERSION

if TYPE_CHECKING:
    from fairlane.app import Fairlane
    from fairlane.model.errors import FairlaneError, Invalid, NotFound, Refused, TryLater
    from fairlane.model.plan import Hold, Pick, Plan
    from fairlane.model.project import Budget, Group, Pause, Pool, Project, Usage, Worker
    from fairlane.model.snapshot import Snapshot
    from fairlane.model.task import Lease, Status, Task
    from fairlane.planner import plan
    from fairlane.policy.policy import Policy

__version__ = VERSION

__all__ = [
    "Budget",
    "Fairlane",
    "FairlaneError",
    "Group",
    "Hold",
    "Invalid",
    "Lease",
    "NotFound",
    "Pause",
    "Pick",
    "Plan",
    "Policy",
    "Pool",
    "Project",
    "Refused",
    "Snapshot",
    "Status",
    "Task",
    "TryLater",
    "Usage",
    "Worker",
    "__version__",
    "plan",
]

_HOMES = {
    "fairlane.app": ("Fairlane",),
    "fairlane.model.errors": ("FairlaneError", "Invalid", "NotFound", "Refused", "TryLater"),
    "fairlane.model.plan": ("Hold", "Pick", "Plan"),
    "fairlane.model.project": ("Budget", "Group", "Pause", "Pool", "Project", "Usage", "Worker"),
    "fairlane.model.snapshot": ("Snapshot",),
    "fairlane.model.task": ("Lease", "Status", "Task"),
    "fairlane.planner": ("plan",),
    "fairlane.policy.policy": ("Policy",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'fairlane' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
