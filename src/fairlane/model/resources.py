"""Pool, worker, pause, usage: what starts depend on beside the tasks themselves."""

from __future__ import annotations

from fairlane.model.instant import Instant, to_instants
from fairlane.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Pool:
    """A provider account whose limits are shared."""

    name: str
    until: Instant | None = None  # end of the cooldown
    hits: int = 0  # throttles in a row; above 0 after `until`: not proved healthy yet
    cause: str = ""

    def __post_init__(self) -> None:
        to_instants(self, "until")


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that runs attempts on one machine."""

    name: str
    slots: int | None = None  # None: holds what it asked for
    labels: tuple[str, ...] = ()
    live: bool = True


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing in its scope starts."""

    scope: str  # all, project:P, kind:K, pool:P, group:G, task:T
    by: str = ""
    since: Instant | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        to_instants(self, "since")


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent in one scope and window, and when parts of it leave the window."""

    scope: str
    window: str | None = None  # None: the same for every window
    tokens: int = 0
    usd: int = 0  # micro-dollars
    leaves: tuple[tuple[Instant, int, int], ...] = ()  # (at, tokens, micro-dollars), by time


@dataclass(frozen=True, slots=True)
class History:
    """What finished attempts of one (project, kind, agent) tell about the next."""

    project: str
    kind: str
    agent: str | None
    estimate: int  # tokens, 70th percentile
    tokens: int = 0  # of the attempts whose cost is known
    usd: int = 0  # their cost in micro-dollars
