"""Processes of a run: which there are, and that none is left."""

from __future__ import annotations

import contextlib
import os
import signal

#: What every process of a run has in its environment.
MARK = "FAIRLANE_RUN"


def sweep(group: int, marker: str) -> None:
    """Nothing stays behind: the group, and whatever left it but carries the run's mark."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for _ in range(3):
        found = marked(marker)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def marked(marker: str) -> list[int]:
    """Processes that carry this run's mark in their environment, but for this one."""
    found = []
    mark = os.fsencode(f"{MARK}={marker}")
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as held:
                if mark in held.read().split(b"\0"):
                    found.append(int(name))
    return found


def process_started(pid: int) -> str | None:
    """What tells this process from a later one of the same number."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as held:
            return held.read().rpartition(")")[2].split()[19]
    except OSError:
        return None


def ignore_nothing() -> None:
    """An agent inherits what is ignored here, but no handler; `nohup` must not keep it from a stop.

    `Popen` itself restores the two that Python ignores.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
