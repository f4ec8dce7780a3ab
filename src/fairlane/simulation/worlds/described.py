"""Workload: a world that a description fixes in part; everything else is drawn."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from fairlane.engine.context import Context
from fairlane.model.errors import Invalid
from fairlane.model.instant import DAY, Instant, Micros
from fairlane.model.record import dataclass, field
from fairlane.model.task import Task
from fairlane.simulation.provider import Limits
from fairlane.simulation.world import Act, Arrival, Fate, Shift
from fairlane.simulation.worlds.ground import TASKS_MAX, Ground, too_many
from fairlane.simulation.worlds.hours import ALWAYS, FAR, WEEK, Hours, spans
from fairlane.simulation.worlds.profile import Profile
from fairlane.simulation.worlds.sources import Source

#: Most times that workers come and go in one simulation.
SHIFTS_MAX = 200_000
#: What is done for a kind that has no work of its own.
ANY_WORK = "default"


@dataclass(frozen=True, slots=True)
class Crew:
    """A worker with its hours, and the instants at which it loses its power."""

    name: str
    slots: int | None = None
    labels: tuple[str, ...] = ()
    begin: Instant | None = None  # None: from the first instant on
    end: Instant | None = None
    hours: Hours = field(default=ALWAYS)
    sudden: bool = False  # so ends each of its shifts
    crashes: tuple[Instant, ...] = ()
    back_after: Micros = 0

    def shifts(self, begin: Instant, end: Instant) -> Iterator[Shift]:
        """When it comes and goes between two instants."""
        since = begin if self.begin is None else max(begin, self.begin)
        until = end if self.end is None else min(end, self.end)
        for opens, closes, _ in spans(self.hours, since, until):
            came: Instant | None = opens
            for crash in self.crashes:
                if came is not None and came <= crash < closes:
                    yield Shift(came, self.name, self.slots, self.labels)
                    yield Shift(crash, self.name, 0, self.labels, sudden=True)
                    back = crash + self.back_after
                    came = back if back < closes else None
            if came is not None:
                yield Shift(came, self.name, self.slots, self.labels)
                if closes < end:
                    yield Shift(closes, self.name, 0, self.labels, self.sudden)

    def expected(self, begin: Instant, end: Instant | None) -> int:
        """About how many shifts it has."""
        until = self.end if end is None else end
        weeks = 0 if until is None else max(0, until - begin) // WEEK + 1
        return 2 * (weeks * len(self.hours.open) + len(self.crashes) + 1)


@dataclass(frozen=True, slots=True)
class Workload:
    """A description: projects, sources of work, what attempts are like, accounts, workers."""

    title: str
    begin: Instant
    days: int | None
    work: Mapping[str, Profile]
    sources: tuple[Source, ...] = ()
    ground: Ground = field(default=Ground())
    crews: tuple[Crew, ...] = ()
    done: tuple[Act, ...] = ()
    _by_name: Mapping[str, Source] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {source.name: source for source in self.sources})

    @property
    def end(self) -> Instant | None:
        """When it ends; None: when nothing more happens."""
        return None if self.days is None else self.begin + self.days * DAY

    @property
    def limits(self) -> Mapping[str, Limits]:
        """What providers allow, by pool."""
        return self.ground.limits

    def prepare(self, context: Context) -> None:
        """Agents, projects and groups."""
        self.ground.prepare(context)

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """What all sources add, by time; at the same instant in the order of the file."""
        rows = (source.arrivals(seed, self.end) for source in self.sources)
        count = 0
        for arrival in heapq.merge(*rows, key=attrgetter("at")):
            count += len(arrival.records)
            if count > TASKS_MAX:
                raise too_many(count)
            yield arrival

    def shifts(self) -> Iterator[Shift]:
        """Workers that come and go; none: one that stays."""
        last = FAR if self.end is None else self.end
        rows = (crew.shifts(self.begin, last) for crew in self.crews)
        nobody = [Shift(self.begin, crew.name, 0, crew.labels) for crew in self.crews[:1]]
        found = heapq.merge(*rows, key=attrgetter("at"))
        first = next(found, None)
        yield from nobody if first is None else [first]  # who never comes does not stay either
        yield from found

    def acts(self) -> Iterable[Act]:
        """What people do besides adding work."""
        return self.done

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        """What becomes of an attempt: by the work of its source, or of its kind."""
        return self.profile(task.id, task.kind).fate(seed, task.id, attempt, ran)

    def profile(self, task: str, kind: str) -> Profile:
        """What attempts of a task are like."""
        source = self._by_name.get(task.partition(".")[0].rpartition("-")[0])
        found = self.work_named(kind, "" if source is None else source.work_of(task))
        if found is None:
            raise no_work(kind)
        return found

    def work_named(self, kind: str, name: str = "") -> Profile | None:
        """The work of this name, else that of a kind, else what everything else is like."""
        if name:
            return self.work.get(name)
        return self.work.get(kind) or self.work.get(ANY_WORK)


def checked(workload: Workload) -> Workload:
    """The workload, unless it has no end, is too large, or has tasks that nobody describes."""
    expected = 0
    for source in workload.sources:
        size = source.expected(workload.end)
        if size is None:
            hint = "Give the source until or most, or the workload days."
            raise Invalid(f"source {source.name} never ends", hint)
        expected += size
        for name, kind in source.kinds():
            if workload.work_named(kind, name) is None:
                raise no_work(kind, name).within(f"source {source.name}")
    if expected > TASKS_MAX:
        raise too_many(expected)
    shifts = 0
    for crew in workload.crews:
        shifts += crew.expected(workload.begin, workload.end)
        if workload.days is None and crew.end is None and crew.hours != ALWAYS:
            hint = "Give the worker until, or the workload days."
            raise Invalid(f"worker {crew.name} comes and goes for ever", hint)
    if shifts > SHIFTS_MAX:
        hint = f"Use at most {SHIFTS_MAX:,}: fewer workers, days, or hours."
        raise Invalid(f"{shifts:,} shifts of workers are too many", hint)
    return workload


def no_work(kind: str, name: str = "") -> Invalid:
    """Nobody knows how long such a task takes."""
    wanted = name or kind
    known = "" if name else f", or [work.{ANY_WORK}] for every kind"
    return Invalid(f"no work is called {wanted!r}", f"Write a table [work.{wanted}]{known}.")
