"""Sources of work: when they add tasks, and which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairlane.model.instant import Instant, Micros
from fairlane.model.record import dataclass, field
from fairlane.model.task import Task
from fairlane.simulation.draws import draw
from fairlane.simulation.quantiles import Constant, Distribution, Exponential
from fairlane.simulation.world import Arrival
from fairlane.simulation.worlds.hours import ALWAYS, FAR, Hours, paced, spans

Fields = Mapping[str, object]
#: The kind of a task that names none.
DEFAULT_KIND = Task("").kind


@dataclass(frozen=True, slots=True)
class Step:
    """One part of what arrives together: a task, or several that are alike."""

    name: str
    fields: Fields
    needs: tuple[str, ...] = ()  # steps before it
    parent: str | None = None  # a step before it
    count: int = 1
    work: str = ""

    def ids(self, arrival: str) -> tuple[str, ...]:
        """What its tasks are called."""
        name = f"{arrival}.{self.name}"
        if self.count == 1:
            return (name,)
        return tuple(f"{name}-{number}" for number in range(1, self.count + 1))

    def has(self, part: str) -> bool:
        """Whether a task whose id ends so is one of its own."""
        return self.name == (part if self.count == 1 else part.rpartition("-")[0])


@dataclass(frozen=True, slots=True)
class Source:
    """Somebody who adds work: at fixed times, steadily, or at random with a rate."""

    name: str
    begin: Instant
    end: Instant | None  # None: as long as the workload
    fields: Fields
    at: tuple[Instant, ...] = ()
    every: Micros | None = None  # of the time in which it is open
    gap: Micros | None = None  # the mean time between arrivals that are drawn
    hours: Hours = field(default=ALWAYS)
    most: int | None = None  # arrivals
    count: Distribution = field(default=Constant(1))  # tasks of one arrival, without steps
    steps: tuple[Step, ...] = ()
    own_group: bool = False  # each arrival is a group
    work: str = ""

    def arrivals(self, seed: int, end: Instant | None) -> Iterator[Arrival]:
        """What it adds until then, by time."""
        for number, at in enumerate(self._moments(seed, end), start=1):
            if self.most is not None and number > self.most:
                return
            records = tuple(self._records(seed, f"{self.name}-{number}"))
            if records:
                yield Arrival(at, records)

    def expected(self, end: Instant | None) -> int | None:
        """About how many tasks it adds; None: without end."""
        size = sum(step.count for step in self.steps) or max(1, self.count.mean)
        gap, until = self.every or self.gap, self._until(end)
        if gap is None:
            return len(self.at) * size
        if until is None:
            return None if self.most is None else self.most * size
        arrivals = max(0, until - self.begin) * self.hours.length // (gap * ALWAYS.length) + 1
        return min(arrivals, arrivals if self.most is None else self.most) * size

    def work_of(self, task: str) -> str:
        """The name of the work that a task of this source is; "": by its kind."""
        part = task.partition(".")[2]
        for step in self.steps:
            if step.has(part):
                return step.work or self.work
        return self.work

    def kinds(self) -> Iterator[tuple[str, str]]:
        """The work and the kind of all its tasks; "": as the kind says."""
        own = str(self.fields.get("kind", DEFAULT_KIND))
        if not self.steps:
            yield self.work, own
        for step in self.steps:
            yield step.work or self.work, str(step.fields.get("kind", own))

    def _until(self, end: Instant | None) -> Instant | None:
        known = [each for each in (self.end, end) if each is not None]
        return min(known, default=None)

    def _moments(self, seed: int, end: Instant | None) -> Iterator[Instant]:
        until = self._until(end)
        if self.at:
            yield from (at for at in self.at if until is None or at < until)
            return
        open_spans = spans(self.hours, self.begin, FAR if until is None else until)
        if self.every is not None:
            length = self.every
            yield from paced(open_spans, lambda _: length, at_once=True)
        elif self.gap is not None:
            gaps = Exponential(self.gap)
            yield from paced(
                open_spans, lambda number: gaps.at(draw(seed, self.name, number, "gap"))
            )

    def _records(self, seed: int, arrival: str) -> Iterator[Fields]:
        fields = {**self.fields, "group": arrival} if self.own_group else self.fields
        if not self.steps:
            size = self.count.at(draw(seed, arrival, "count"))
            names = [arrival] if size == 1 else [f"{arrival}.{at}" for at in range(1, size + 1)]
            yield from ({"id": name, **fields} for name in names)
            return
        ids = {step.name: step.ids(arrival) for step in self.steps}
        for step in self.steps:
            relatives: dict[str, object] = {}
            if step.needs:
                relatives["needs"] = [task for need in step.needs for task in ids[need]]
            if step.parent is not None:
                relatives["parent"] = ids[step.parent][0]
            for task in ids[step.name]:
                yield {"id": task, **fields, **step.fields, **relatives}
