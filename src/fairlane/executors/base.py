"""Executor: the seam between a lease and a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import NoneType
from typing import Any, Protocol

from fairlane.executors.runfiles import Damaged
from fairlane.model.amounts import LINE_MAX
from fairlane.model.record import dataclass


@dataclass(frozen=True, slots=True)
class After:
    """What a runner starts when it has said how its attempt ended, unless somebody watches."""

    argv: tuple[str, ...]
    unless: Path  # nobody watches where nobody has a lock on this file


@dataclass(frozen=True, slots=True)
class Orders:
    """Everything that it takes to start one attempt. The environment is never written down."""

    folder: Path  # the run folder
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(repr=False)
    stdin: str | None = field(default=None, repr=False)
    stop: tuple[float, float] = (10.0, 10.0)  # seconds after the interrupt, after the terminate
    grace: float = 30.0  # seconds after the final record
    final: tuple[tuple[str, tuple[str, ...]], ...] = ()
    timeout: float | None = None
    silence: float | None = None
    max_bytes: int = 64 * 1024 * 1024
    line_max: int = LINE_MAX
    mask: tuple[str, ...] = ()
    after: After | None = None


@dataclass(frozen=True, slots=True)
class Handle:
    """A process that owns an attempt, told apart from a later one of the same number."""

    pid: int
    pid_started: str


@dataclass(frozen=True, slots=True)
class Exit:
    """How an attempt's process ended."""

    exit_code: int | None = None
    signal: int | None = None
    launch_error: str = ""
    errno: int = 0  # of the launch error
    environment: bool = False  # whatever its number, the launch error is not the agent's
    stopped: str = ""  # why it was stopped: stop, timeout, silence, grace
    final: bool = False  # a final record was seen
    record: str = ""  # the last one, if it is short
    cut: bool = False  # a full disk has cost the log a part, perhaps that record
    dropped: int = 0  # bytes of output
    started_at: int = 0
    ended_at: int = 0
    damage: str = ""  # what is wrong with the run folder; then nothing else is known

    @classmethod
    def of(cls, document: dict[str, Any]) -> Exit:
        """From what the runner wrote; what it did not say is empty."""
        known = {name: document[name] for name in _SORTS if name in document}
        for name, value in known.items():
            if type(value) not in _SORTS[name]:
                raise Damaged(f"exit.json: {name} is {value!r:.60}")
        return cls(**known)


#: The types that the runner writes.
_SORTS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("exit_code", "signal"), (int, NoneType)),
    **dict.fromkeys(("launch_error", "stopped", "record"), (str,)),
    **dict.fromkeys(("errno", "dropped", "started_at", "ended_at"), (int,)),
    **dict.fromkeys(("final", "environment", "cut"), (bool,)),
}


class Executor(Protocol):
    """Three verbs, and two for whoever launches often."""

    def launch(self, orders: Orders) -> Handle:
        """Start it; durable enough to be adopted from its folder alone."""

    def adopt(self, folder: Path) -> Handle | None:
        """The process that owns this run folder, if it lives."""

    def stop(self, handle: Handle) -> None:
        """Ask for its stop; the runner climbs the ladder and leaves nothing behind."""

    def warm_up(self) -> None:
        """Prepare for the next launch, where that makes it quicker."""

    def close(self) -> None:
        """No more launches; what was prepared is undone."""
