"""The only file that reads time. Everything else gets it as an argument."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fairlane.model.instant import Instant


class Clock(Protocol):
    """Whoever tells the time."""

    def now(self) -> Instant:
        """This instant."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> Instant:
        """Whole microseconds of UTC."""
        return time.time_ns() // 1000


@dataclass(slots=True)
class FixedClock:
    """A clock that stands still until it is set: `--now`, tests, replay."""

    at: Instant

    def now(self) -> Instant:
        """The time it was set to."""
        return self.at
