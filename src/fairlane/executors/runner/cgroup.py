"""A cgroup (v2) for one agent, where this process may make one: the kernel keeps its limits, and
kills all that is in it at once, whatever an agent did to hide it.
"""

from __future__ import annotations

import contextlib
import os
import time

PREFIX = "fairlane-"
#: The limit on tasks of the kernel counts threads, of which a process may have many.
THREADS = 64
#: How long it may take until what was killed is gone.
KILL_SECONDS = 20.0
#: How systemd marks a group that was given away (`Delegate=yes`).
DELEGATED = ("user.delegate", "trusted.delegate")


class Group:
    """A cgroup that is made for an agent; `path` is empty where none can be had."""

    def __init__(self, run: str) -> None:
        self.path = ""
        for place in places():
            path = os.path.join(place, name_of(run))
            try:
                os.mkdir(path)
            except FileExistsError:
                pass  # of an earlier attempt in this folder
            except OSError:
                continue
            if os.access(os.path.join(path, "cgroup.kill"), os.W_OK):
                self.path = path
                return
            _remove(path)

    def limit(self, memory: int | None, processes: int | None) -> None:
        """Limits that the kernel keeps, as far as it may here; others must be watched."""
        if not self.path:
            return
        above = os.path.dirname(self.path)
        if memory is not None:
            _write(above, "cgroup.subtree_control", "+memory")
            for name, text in (("max", str(memory)), ("swap.max", "0"), ("oom.group", "1")):
                _write(self.path, f"memory.{name}", text)
        if processes is not None:
            _write(above, "cgroup.subtree_control", "+pids")
            _write(self.path, "pids.max", str(processes * THREADS))

    def join(self) -> None:
        """In the new process, before it becomes the agent."""
        if self.path:
            _write(self.path, "cgroup.procs", "0")

    def ran_out(self) -> str:
        """Which limit the kernel has enforced; empty: none."""
        if self.path:
            if _count(self.path, "memory.events", "oom_kill"):
                return "memory"
            if _count(self.path, "pids.events", "max"):
                return "processes"
        return ""

    def end(self) -> None:
        """Kill whatever is in it, and remove it."""
        if self.path:
            kill(self.path)
            self.path = ""


def places() -> list[str]:
    """Where a group may be made: beside the own one, if it was given away as a whole; else in it.

    A group that has processes of its own cannot pass limits on. So a service whose process was put
    into a group below (`DelegateSubgroup=`) makes others beside that.
    """
    own = own_group()
    if not own:
        return []
    above = os.path.dirname(own)
    return [above, own] if _is_delegated(above) else [own]


def own_group() -> str:
    """The folder of the cgroup of this process; empty: there is none."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            paths = [line[3:].rstrip("\n") for line in file if line.startswith("0::")]
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = [line.split(" - ", 1) for line in file if " - cgroup2 " in line]
    except OSError:
        return ""
    for path in paths:
        for left, _ in mounts:
            root, point = left.split()[3:5]
            below = os.path.relpath(path, root)
            if not below.startswith(".."):
                return os.path.normpath(os.path.join(point, below))
    return ""


def name_of(run: str) -> str:
    """The name of the group of a run folder, which nothing inside the folder can change."""
    told = os.stat(run)
    return f"{PREFIX}{told.st_dev:x}-{told.st_ino:x}"


def leave() -> None:
    """A runner that an agent has started is no part of that agent's group."""
    own = own_group()
    if os.path.basename(own).startswith(PREFIX):
        _write(os.path.dirname(own), "cgroup.procs", "0")


def end_of(run: str) -> None:
    """Kill what a dead runner has left in the group of a run folder."""
    with contextlib.suppress(OSError):
        name = name_of(run)
        for place in places():
            path = os.path.join(place, name)
            if os.path.isdir(path):
                kill(path)


def kill(path: str) -> None:
    """Kill whatever is in a group, and remove it."""
    _write(path, "cgroup.kill", "1")
    give_up = time.monotonic() + KILL_SECONDS
    while not _remove(path) and time.monotonic() < give_up:
        time.sleep(0.002)


def _is_delegated(path: str) -> bool:
    for name in DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(path, name) == b"1":
                return True
    return False


def _remove(path: str) -> bool:
    """Remove a group, and those that were made in it; False: there are processes in it."""
    try:
        for name in os.listdir(path):
            below = os.path.join(path, name)
            if os.path.isdir(below):
                _remove(below)
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _write(folder: str, name: str, text: str) -> None:
    """Tell the kernel something, where it lets us."""
    path = os.path.join(folder, name)
    with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
        file.write(text)


def _count(folder: str, name: str, key: str) -> int:
    path = os.path.join(folder, name)
    with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(key + " "))
    return 0
