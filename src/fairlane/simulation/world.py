"""World: what a simulation is about: who arrives, who works, and what becomes of each attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Counters
from fairlane.model.instant import SECOND, Instant, Micros
from fairlane.model.record import dataclass
from fairlane.model.task import Outcome, Task
from fairlane.simulation.provider import Limits

#: The worker of a world that names none; it has as many slots as the policy allows.
WORKER = "local"
#: Longest simulation, in days.
DAYS_MAX = 3660
#: Most attempts of one simulation, which keeps all of them; and of one trace.
ATTEMPTS_MAX = 4_000_000


class Arrival(NamedTuple):
    """Tasks that somebody adds in one call, with the fields that `fairlane add` takes."""

    at: Instant
    records: tuple[Mapping[str, object], ...]


class Shift(NamedTuple):
    """A worker arrives, changes or leaves."""

    at: Instant
    worker: str
    slots: int | None = None  # 0: it leaves; None: as many as cap `all` lets run
    labels: tuple[str, ...] = ()
    sudden: bool = False  # it vanishes with its attempts, as after a power cut


class Act(NamedTuple):
    """Something that a person does: an operation of the table, with its arguments."""

    at: Instant
    operation: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one attempt."""

    lasts: Micros = SECOND  # from its lease to its end
    outcome: Outcome = Outcome.SUCCEEDED
    tokens: Counters = (0, 0, 0, 0)
    usd: int | None = None  # micro-dollars
    detail: str = ""
    retry_after: Micros | None = None  # how long a throttle asks to wait
    resets_at: Instant | None = None  # when a used-up window opens again
    reports: int = 0  # how often it tells of its usage before its end


class World(Protocol):
    """A description: it can be simulated many times, under any policy."""

    @property
    def begin(self) -> Instant:
        """The first instant."""

    @property
    def days(self) -> int | None:
        """How long a simulation lasts; None: until nothing more happens."""

    @property
    def limits(self) -> Mapping[str, Limits]:
        """What providers allow, by pool: a `Provider` of these admits each attempt."""

    def prepare(self, context: Context) -> None:
        """Put in place what is there at the begin: agents, projects, groups, work under way.

        What is in flight then goes on: its `fate` is asked with the time that it `ran`.
        """

    def arrivals(self, seed: int) -> Iterable[Arrival]:
        """Who adds work, in the order of time."""

    def shifts(self) -> Iterable[Shift]:
        """Workers that come and go; none: one that stays."""

    def acts(self) -> Iterable[Act]:
        """What people do besides adding work."""

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        """What becomes of an attempt; of one that runs already it is known how long it `ran`."""
