"""Alive: whether the process of an attempt is there, by its number and its start."""

from __future__ import annotations

from pathlib import Path

from fairlane.settings import host_name
from fairlane.store.base import Attempt


def is_alive(attempt: Attempt) -> bool:
    """Whether the attempt's process runs on this host; a number that was given anew is not it."""
    if attempt.pid is None or attempt.host != host_name():
        return False
    return process_started(attempt.pid) == attempt.pid_started is not None


def process_started(pid: int) -> str | None:
    """What tells this process from a later one of the same number; None: there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
