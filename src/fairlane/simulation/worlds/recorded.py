"""Recorded: a world that repeats arrivals and attempts; what was not recorded is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlane.engine.context import Context
from fairlane.model.instant import Instant, Micros
from fairlane.model.record import dataclass, field
from fairlane.model.task import Task
from fairlane.policy.policy import Policy
from fairlane.simulation.provider import Limits
from fairlane.simulation.world import Act, Arrival, Fate, Shift
from fairlane.simulation.worlds.ground import Ground
from fairlane.simulation.worlds.samples import Place, Samples, place_of

#: An attempt of a task, by its number.
Try = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace as a world."""

    begin: Instant
    days: int | None
    ground: Ground
    arrived: tuple[Arrival, ...]  # by time
    fates: Mapping[Try, Fate]
    places: Mapping[str, Place]  # of each task that arrives
    came: tuple[Shift, ...] = ()
    done: tuple[Act, ...] = ()
    _samples: Samples = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = (
            (self.places[task], fate)
            for (task, _), fate in self.fates.items()
            if task in self.places
        )
        samples = Samples(rows, Policy.preset("balanced").share.default_estimate)
        object.__setattr__(self, "_samples", samples)

    @property
    def limits(self) -> Mapping[str, Limits]:
        """What providers allow, by pool."""
        return self.ground.limits

    def prepare(self, context: Context) -> None:
        """Agents, projects and groups."""
        self.ground.prepare(context)

    def arrivals(self, seed: int) -> Iterable[Arrival]:
        """What was added, by time; the same for every seed."""
        return self.arrived

    def shifts(self) -> Iterable[Shift]:
        """Workers that came and went; none: one that stays."""
        return self.came

    def acts(self) -> Iterable[Act]:
        """What people did."""
        return self.done

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        """As recorded; of an attempt that was not recorded as another one like it."""
        fate = self.fates.get((task.id, attempt))
        if fate is not None and fate.lasts > ran:
            return fate
        return self._samples.fate(seed, task.id, attempt, place_of(task), ran)
