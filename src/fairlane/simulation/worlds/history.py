"""History: a store as it is now, and a future drawn from what it has recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from fairlane.engine.context import Context
from fairlane.engine.look.planned import look
from fairlane.engine.usage import SAMPLES, samples_value
from fairlane.model.instant import DAY, Instant, Micros
from fairlane.model.project import History, Project, SmallRow, Worker, WorkerRow
from fairlane.model.record import changed, dataclass
from fairlane.model.task import Attempt, Outcome, Status, Task
from fairlane.service.reports.listing import every
from fairlane.service.reports.stats import ATTEMPTS_MAX
from fairlane.settings import Settings
from fairlane.simulation.provider import Limits
from fairlane.simulation.world import WORKER, Act, Arrival, Fate, Shift
from fairlane.simulation.worlds.hours import FAR
from fairlane.simulation.worlds.rates import Rates, rates_of
from fairlane.simulation.worlds.records import without_repository
from fairlane.simulation.worlds.samples import Found, Samples, place_of, sample_of
from fairlane.store.base import Filter, Reading
from fairlane.store.copy import Content, read_content, write_content

#: The statuses of tasks to which something can still happen.
_OPEN = (Status.QUEUED, Status.LEASED, Status.RUNNING, Status.PARKED)
#: What planning keeps between rounds in values of its own.
_VALUES = ("clock", "batch", "readiness")


@dataclass(frozen=True, slots=True)
class HistoryWorld:
    """What a store has, from now on; nobody adds anything, unless the recorded rates go on."""

    begin: Instant
    days: int | None
    settings: Settings
    content: Content
    samples: Samples
    came: tuple[Shift, ...]
    lost: frozenset[str] = frozenset()  # leases that have expired, and whose worker is not there
    rates: Rates | None = None

    @property
    def limits(self) -> Mapping[str, Limits]:
        """Nobody has recorded what providers allow: throttles are drawn like other ends."""
        return {}

    def prepare(self, context: Context) -> None:
        """The queue, what is in flight, and everything on which planning depends."""
        own = self.settings
        context.settings = changed(
            context.settings, agent=own.agent, agents=own.agents, pools=own.pools, checks=own.checks
        )
        with context.store.write() as tx:
            write_content(tx, self.content)

    def arrivals(self, seed: int) -> Iterable[Arrival]:
        """Nothing, or at random with the recorded rates."""
        if self.rates is None:
            return ()
        end = FAR if self.days is None else self.begin + self.days * DAY
        return self.rates.arrivals(seed, self.begin, end)

    def shifts(self) -> Iterable[Shift]:
        """The workers that live now; where none does, that of this machine."""
        return self.came

    def acts(self) -> Iterable[Act]:
        """Nobody does anything."""
        return ()

    def fate(self, seed: int, task: Task, attempt: int, ran: Micros = 0) -> Fate:
        """Like an attempt that is recorded; of one that runs already, that took longer."""
        if ran and task.lease is not None and task.lease.id in self.lost:
            return Fate(ran + 1, Outcome.LOST, detail="its worker is gone")
        return self.samples.fate(seed, task.id, attempt, place_of(task), ran)

    def rests_on(self, task: Task, ran: Micros = 0) -> Found:
        """The samples from which a task's attempts are drawn, and how alike they are."""
        return self.samples.find(place_of(task), ran)


def history_world(
    context: Context, *, days: int | None = None, with_arrivals: bool = False
) -> HistoryWorld:
    """The store of a context as it is now; `with_arrivals`: the recorded rates go on."""
    with context.store.read() as reading:
        now, policy = context.now(), context.policy_for_reading(reading)
        ended = reading.ended_attempts(0, ATTEMPTS_MAX)
        queue = [placed.task for placed in every(reading, Filter(status=_OPEN))]
        snapshot = look(context, reading, policy, now)
        content = read_content(reading, _wanted(queue, ended), _values(reading))
    live = [worker for worker in snapshot.workers if worker.live]
    rows = [row for row in map(sample_of, (attempt for attempt, _ in ended)) if row is not None]
    past = {task.id: task for _, task in ended} | {task.id: task for task in queue}
    return HistoryWorld(
        begin=now,
        days=days,
        settings=context.settings,
        content=_adapted(content, snapshot.projects),
        samples=Samples(rows, policy.share.default_estimate),
        came=_shifts(live or [_own(context.settings)], now),
        lost=_lost(content.attempts, {worker.name for worker in live}, now),
        rates=rates_of(past.values(), now) if with_arrivals else None,
    )


def _wanted(queue: Iterable[Task], ended: Iterable[tuple[Attempt, Task]]) -> set[str]:
    """The tasks to copy: the open ones, those that they name, those from which estimates come."""
    wanted: set[str] = set()
    for task in queue:
        wanted |= {task.id, *task.needs} | ({task.parent} if task.parent else set())
    used: Counter[tuple[str, str, str | None]] = Counter()
    for attempt, _ in ended:  # the newest first
        place = (attempt.project, attempt.kind, attempt.agent)
        if any(attempt.tokens) and used[place] < SAMPLES:
            used[place] += 1
            wanted.add(attempt.task)
    return wanted


def _values(reading: Reading) -> list[str]:
    """The values to copy: those of planning, and what estimates take from elsewhere."""
    learned = reading.table(History).values()
    return [*_VALUES, *(samples_value(row.project, row.kind, row.agent) for row in learned)]


def _adapted(content: Content, projects: Mapping[str, Project]) -> Content:
    """The same for a simulation: no repository, workers of its own, attempts that they hold."""
    return changed(
        content,
        rows=tuple(_rows(content.rows, projects)),
        attempts=tuple(
            attempt if attempt.ended_at is not None else _held(attempt)
            for attempt in content.attempts
        ),
    )


def _rows(rows: Iterable[SmallRow], projects: Mapping[str, Project]) -> Iterator[SmallRow]:
    for row in rows:
        if isinstance(row, Project):
            yield without_repository(changed(row, workspaces=projects[row.name].workspaces))
        elif not isinstance(row, WorkerRow):
            yield row


def _held(attempt: Attempt) -> Attempt:
    """An attempt in flight as a virtual worker holds it: on its own host, known by its lease."""
    worker = attempt.worker or WORKER
    return changed(attempt, worker=worker, host=worker, executor="process", handle=attempt.lease)


def _own(settings: Settings) -> Worker:
    """The worker of this machine, as the next daemon would have it."""
    return Worker(settings.worker.name, settings.worker.slots, settings.worker.labels)


def _shifts(workers: Iterable[Worker], now: Instant) -> tuple[Shift, ...]:
    return tuple(Shift(now, worker.name, worker.slots, worker.labels) for worker in workers)


def _lost(attempts: Iterable[Attempt], live: set[str], now: Instant) -> frozenset[str]:
    """The leases that have expired while their worker was away."""
    return frozenset(
        attempt.lease
        for attempt in attempts
        if attempt.ended_at is None and attempt.expires_at <= now and attempt.worker not in live
    )
