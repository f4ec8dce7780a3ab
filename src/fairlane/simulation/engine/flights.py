"""Flights: the attempts that run, each along its course; what they report, and how they end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush

from fairlane.engine.attempts import Progress
from fairlane.engine.end_attempt import Ending, Report
from fairlane.lifecycle.step import HAPPENINGS
from fairlane.model.errors import Invalid
from fairlane.model.event import Happening
from fairlane.model.instant import Instant
from fairlane.model.record import changed, dataclass
from fairlane.model.task import Attempt, Outcome, Task
from fairlane.policy.policy import Policy
from fairlane.simulation.course import Course, course_of, course_under_way, use
from fairlane.simulation.provider import Provider
from fairlane.simulation.world import ATTEMPTS_MAX, World

#: What a daemon says of an attempt whose runner it does not find.
GONE = Ending(Happening.LOST, Report(detail="its runner is gone"))


@dataclass(frozen=True, slots=True)
class Flight:
    """One attempt that runs."""

    task: str
    attempt: Attempt
    worker: str
    course: Course
    told_at: Instant  # its provider knows what it used until then

    @property
    def lease(self) -> str:
        """The lease that it holds."""
        return self.attempt.lease


@dataclass(frozen=True, slots=True)
class Due:
    """What attempts do at one instant, in the order of their leases."""

    reports: dict[str, Progress]
    endings: dict[str, Ending]


class Flights:
    """Every attempt that runs, by lease; those of a worker that vanished are lost."""

    def __init__(self, world: World, seed: int) -> None:
        self.running: dict[str, Flight] = {}
        self._begun = 0
        self._world, self._seed, self._provider = world, seed, Provider(world.limits)
        self._steps: list[tuple[Instant, int, int, str]] = []  # when, fence, which report, lease
        self._lost: dict[str, list[str]] = {}  # by worker

    @property
    def at(self) -> Instant | None:
        """When the next of them reports or ends."""
        while self._steps and self._steps[0][3] not in self.running:
            heappop(self._steps)
        return self._steps[0][0] if self._steps else None

    def begin(self, task: Task, attempt: Attempt, policy: Policy, at: Instant) -> None:
        """An attempt begins, now or after a pause."""
        self._begun += 1
        if self._begun > ATTEMPTS_MAX:
            hint = "Simulate fewer days or tasks, or let fewer attempts fail."
            raise Invalid(f"more than {ATTEMPTS_MAX:,} attempts", hint)
        course = course_of(
            self._world, self._provider, policy, self._seed, task, attempt.number, at
        )
        self._follow(attempt, course, at)

    def go_on(self, task: Task, attempt: Attempt, policy: Policy, now: Instant) -> None:
        """An attempt runs since before the begin."""
        course = course_under_way(
            self._world, policy, self._seed, task, attempt.number, attempt.leased_at, now
        )
        self._follow(attempt, course, now)

    def due(self, now: Instant) -> Due:
        """Take out what is due now."""
        reports: dict[str, Progress] = {}
        endings: dict[str, Ending] = {}
        while (at := self.at) is not None and at <= now:
            _, _, number, lease = heappop(self._steps)
            flight = self.running[lease]
            refusal = use(self._provider, flight.course, flight.told_at, now)
            if number > flight.course.fate.reports:
                endings[lease] = _ending(flight, now)
            elif refusal is not None:
                fate = changed(
                    flight.course.fate, outcome=refusal.outcome, detail="refused by the provider",
                    retry_after=refusal.retry_after, resets_at=refusal.resets_at,
                )  # fmt: skip
                cut = changed(flight, course=changed(flight.course, fate=fate))
                endings[lease] = _ending(cut, now)
            else:
                reports[lease] = Progress(*flight.course.used(now))
                self.running[lease] = changed(flight, told_at=now)
                self._schedule(flight, number + 1)
        return Due(reports, endings)

    def stopped(self, leases: Iterable[str], now: Instant) -> dict[str, Ending]:
        """The ends of attempts that somebody stops: with what they have used so far."""
        endings: dict[str, Ending] = {}
        for lease in leases:
            flight = self.running[lease]
            use(self._provider, flight.course, flight.told_at, now)
            endings[lease] = Ending(Happening.STOPPED, Report(*flight.course.used(now)))
        return endings

    def end(self, leases: Iterable[str]) -> None:
        """These have ended."""
        for lease in leases:
            del self.running[lease]

    def by_worker(self) -> Counter[str]:
        """How many attempts each worker runs."""
        return Counter(flight.worker for flight in self.running.values())

    def vanish(self, worker: str) -> list[str]:
        """A worker is gone with all its attempts: their leases."""
        lost = [flight.lease for flight in self.running.values() if flight.worker == worker]
        self._lost.setdefault(worker, []).extend(lost)
        self.end(lost)
        return lost

    def lost_by(self, worker: str) -> list[str]:
        """A worker is back: the leases that it had."""
        return self._lost.pop(worker, [])

    def of(self, worker: str) -> list[Flight]:
        """What runs on a worker."""
        return [flight for flight in self.running.values() if flight.worker == worker]

    def _follow(self, attempt: Attempt, course: Course, now: Instant) -> None:
        flight = Flight(attempt.task, attempt, attempt.worker or "", course, now)
        self.running[attempt.lease] = flight
        number = 1
        while course.report_at(number) <= now and number <= course.fate.reports:
            number += 1
        self._schedule(flight, number)

    def _schedule(self, flight: Flight, number: int) -> None:
        at = flight.course.report_at(number)
        heappush(self._steps, (at, flight.attempt.fence, number, flight.lease))


def _ending(flight: Flight, now: Instant) -> Ending:
    """How an attempt ends by itself: as its fate says."""
    fate = flight.course.fate
    report = Report(
        *flight.course.used(now),
        detail=fate.detail,
        retry_after=fate.retry_after,
        resets_at=fate.resets_at,
    )
    session = f"{flight.task}-{flight.attempt.number}" if flight.attempt.checks else None
    return Ending(HAPPENINGS[Outcome(fate.outcome)], report, session)
