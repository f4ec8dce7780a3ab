"""Event: one line of the log; and what can happen to a task."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from fairlane.model.instant import Instant
from fairlane.model.record import dataclass, field


class Happening(StrEnum):
    """What can happen to a task; the transition table says what follows."""

    LEASED = "leased"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CHECK_FAILED = "check_failed"
    LAUNCH_FAILED = "launch_failed"
    LOST = "lost"
    THROTTLED = "throttled"
    ENVIRONMENT = "environment"
    RELEASED = "released"
    STOPPED = "stopped"  # its process is known dead after a cancel
    CANCEL = "cancel"
    RETRY = "retry"
    AGAIN = "again"
    HALF_OPEN = "half_open"
    LATE_SUCCESS = "late_success"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the append-only log."""

    number: int
    at: Instant
    kind: str
    task: str | None = None
    project: str | None = None
    data: Mapping[str, object] = field(default_factory=dict)
