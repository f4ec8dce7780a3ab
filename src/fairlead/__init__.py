"""Fairlead: the scheduler for coding agents.

The pure planner needs nothing but the standard library:

    from fairlead import Policy, Snapshot, Task, plan

Names are imported when they are first used, so `import fairlead` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.app import Fairlead
    from fairlead.model.errors import FairleadError, Invalid, NotFound, Refused, TryLater
    from fairlead.model.plan import Hold, Pick, Plan
    from fairlead.model.project import Budget, Group, Project
    from fairlead.model.resources import Pause, Pool, Usage, Worker
    from fairlead.model.snapshot import Snapshot
    from fairlead.model.task import Lease, Status, Task
    from fairlead.planner import plan
    from fairlead.policy.policy import Policy

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Fairlead",
    "FairleadError",
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
    "fairlead.app": ("Fairlead",),
    "fairlead.model.errors": ("FairleadError", "Invalid", "NotFound", "Refused", "TryLater"),
    "fairlead.model.plan": ("Hold", "Pick", "Plan"),
    "fairlead.model.project": ("Budget", "Group", "Project"),
    "fairlead.model.resources": ("Pause", "Pool", "Usage", "Worker"),
    "fairlead.model.snapshot": ("Snapshot",),
    "fairlead.model.task": ("Lease", "Status", "Task"),
    "fairlead.planner": ("plan",),
    "fairlead.policy.policy": ("Policy",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'fairlead' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
