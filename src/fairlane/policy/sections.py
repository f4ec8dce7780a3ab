"""The sections of a policy, each a frozen value; every field is one key of `policy.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fairlane.model.instant import Micros, parse_duration
from fairlane.model.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

#: Windows that begin with the calendar (UTC, weeks from Monday), and the one that never ends.
CALENDAR_WINDOWS = ("day", "week", "month")
TOTAL_WINDOW = "total"


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many start, and when."""

    mode: str  # deferred: a cycle starts them; direct: `add` does
    batch: int | None  # most starts in one cycle.interval
    spawn_delay: Micros  # between two starts of one cycle


@dataclass(frozen=True, slots=True)
class Cycle:
    """How often the daemon looks when nothing wakes it."""

    interval: Micros


@dataclass(frozen=True, slots=True)
class Share:
    """Whose turn it is between projects."""

    mode: str  # virtual-time, deficit, none
    frozen: bool  # deficit only: nothing moves inside a round
    window: Micros  # rolling window of usage, starts and completions
    guarantee: int
    guarantee_counts: str  # starts, completions
    idle_credit: int  # tokens that whoever was away may catch up
    default_estimate: int  # tokens, until there is history


@dataclass(frozen=True, slots=True)
class Score:
    """The terms of the score; all whole numbers."""

    kind: Mapping[str, int]  # "*" stands for every kind that is not named
    age_per_minute: int
    age_max: int
    age_from: Literal["ready", "created"]
    depth_per_level: int
    retry_penalty: int
    retry_penalty_max: int

    def base(self, kind: str) -> int:
        """The score that a kind starts with: its own, else that of `*`, else 0."""
        own = self.kind.get(kind)
        return self.kind.get("*", 0) if own is None else own


@dataclass(frozen=True, slots=True)
class Overdue:
    """After how long a ready task goes first; absent = never."""

    after: Micros | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """When a running attempt is stopped."""

    timeout: Micros | None  # after this long
    silence: Micros | None  # after this long without output


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a task waits for."""

    parent: Literal["done", "none"]
    upstream: Literal["hold", "cancel", "run"]


@dataclass(frozen=True, slots=True)
class Locks:
    """What a task that is not parallel locks."""

    serial: Literal["group+kind", "none"]
    parallel_default: bool


@dataclass(frozen=True, slots=True)
class LeaseRules:
    """How long a lease lasts without renewal."""

    ttl: Micros


@dataclass(frozen=True, slots=True)
class Retry:
    """Wait = min(cap, base * factor^(n-1) * (1 +- jitter)) after failure n."""

    max_attempts: int
    base: Micros
    factor: Fraction
    cap: Micros
    jitter: Fraction


@dataclass(frozen=True, slots=True)
class Breaker:
    """Launch failures in a row that park a task, and whether it is tried again by itself."""

    launch_failures: int | None
    half_open_after: Micros | None


@dataclass(frozen=True, slots=True)
class Backpressure:
    """Queue depths that warn and that refuse; see `Policy.backpressure_limits`."""

    soft: int | Literal["auto"] | None
    hard: int | Literal["auto"] | None


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Wait = max(what the provider said, base * 2^(hits-1)), hits counted to exponent_max."""

    base: Micros
    exponent_max: int
    probe: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What one attempt may add."""

    children: int
    depth: int


@dataclass(frozen=True, slots=True)
class UsageRules:
    """Which counters make up "tokens"."""

    count: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recovery:
    """When something whose holder is unknown is cleared."""

    stale_after: Micros


@dataclass(frozen=True, slots=True)
class History:
    """How long finished tasks, decisions and events are kept."""

    keep: Micros


def is_calendar(window: str) -> bool:
    """Whether a budget's window begins with the day, the week or the month."""
    return window in CALENDAR_WINDOWS


def window_micros(window: str) -> Micros | None:
    """The length of a rolling window; None for calendar windows and `total`."""
    if window == TOTAL_WINDOW or is_calendar(window):
        return None
    return parse_duration(window)
