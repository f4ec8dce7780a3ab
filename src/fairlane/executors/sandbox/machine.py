"""What this machine has for a sandbox: bubblewrap that works, Landlock, cgroups."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from fairlane.executors.runner import cgroup, restrictions
from fairlane.model.sandbox import SandboxSettings

_SECONDS_MAX = 10.0
_TRIAL = ("--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--cap-drop", "ALL", "true")


def bwrap() -> str | None:
    """Where bubblewrap is; None: not on the path."""
    return shutil.which("bwrap")


def problem_of(settings: SandboxSettings) -> str:
    """Why this machine cannot give the sandbox of these settings; empty: it can.

    A bubblewrap that is there and does not work says so when it starts an agent, which then does
    not run.
    """
    if settings.kind == "bwrap" and bwrap() is None:
        return "bwrap is not installed"
    if settings.kind == "landlock" and restrictions.abi() < restrictions.ABI_MIN:
        return landlock_problem()
    return ""


def bwrap_problem() -> str:
    """Why bubblewrap cannot be used here, by trying it; empty: it works."""
    program = bwrap()
    if program is None:
        return "bwrap is not installed"
    try:
        done = subprocess.run(
            [program, *_TRIAL], capture_output=True, text=True, check=False, timeout=_SECONDS_MAX
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not work here: {error}"
    said = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (said[-1] if said else f"bwrap: exit {done.returncode}")


def landlock_problem() -> str:
    """Why Landlock cannot be used here; empty: it works."""
    version = restrictions.abi()
    if version >= restrictions.ABI_MIN:
        return ""
    has = f"this kernel has version {version}" if version else "this kernel has none"
    return f"Landlock {restrictions.ABI_MIN} is needed (Linux 6.2), and {has}"


def proposal() -> str:
    """The best kind that works here; empty: none does."""
    if not bwrap_problem():
        return "bwrap"
    return "" if landlock_problem() else "landlock"


def kernel_limits(folder: Path) -> list[str]:
    """Which limits the kernel keeps for a group of processes, by trying it; others are watched."""
    group = cgroup.Group(str(folder))
    if not group.path:
        return []
    group.limit(1 << 30, 1)
    files = {"memory": "memory.max", "processes": "pids.max"}
    kept = [name for name, file in files.items() if Path(group.path, file).exists()]
    group.end()
    return kept
