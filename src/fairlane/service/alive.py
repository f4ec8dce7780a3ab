"""Alive: whether the process of an attempt is there, or has left how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fairlane.model.instant import Instant
from fairlane.settings import host_name
from fairlane.store.base import Attempt


def run_folder(home: Path, attempt: Attempt) -> Path:
    """Where one attempt leaves its traces."""
    return home / "runs" / attempt.task / str(attempt.number)


def is_here(attempt: Attempt) -> bool:
    """Whether a process of this host runs the attempt, or did."""
    return attempt.executor != "none" and attempt.host == host_name()


def is_alive(home: Path, attempt: Attempt) -> bool:
    """Whether the attempt's process runs on this host; a number that was given anew is not it.

    Where the store does not know the process yet, its run folder tells.
    """
    if not is_here(attempt):
        return False
    if attempt.pid is not None:
        return process_started(attempt.pid) == attempt.pid_started is not None
    from fairlane.executors.process import owner_of

    return owner_of(run_folder(home, attempt)) is not None


def has_ended(home: Path, attempt: Attempt) -> bool:
    """Whether its process left how it ended, which somebody is to take in."""
    if not is_here(attempt):
        return False
    from fairlane.executors.process import exit_of

    return exit_of(run_folder(home, attempt)) is not None


def outlives_lease(home: Path, attempt: Attempt) -> bool:
    """Whether expiry does not end the attempt: it runs, or its result lies on disk."""
    return is_alive(home, attempt) or has_ended(home, attempt)


def revoke_expired(home: Path, attempts: Iterable[Attempt], now: Instant) -> None:
    """Before leases end: runners that have not shown themselves by now start nothing more."""
    for attempt in attempts:
        unknown = attempt.pid is None and attempt.expires_at <= now and is_here(attempt)
        if unknown and not outlives_lease(home, attempt):
            from fairlane.executors.process import revoke

            revoke(run_folder(home, attempt))


def process_started(pid: int) -> str | None:
    """What tells this process from a later one of the same number; None: there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
