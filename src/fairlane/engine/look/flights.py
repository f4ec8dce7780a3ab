"""What is in flight, as planning sees it: kept by task, in order, and by when leases expire."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from operator import attrgetter

from fairlane.engine.context import Facts
from fairlane.model.instant import Instant
from fairlane.model.project import counted
from fairlane.model.record import changed
from fairlane.model.snapshot import InFlight
from fairlane.model.task import Attempt, Task
from fairlane.policy.policy import Policy
from fairlane.store.base import Reading

_SEQ = attrgetter("seq")
_FENCE = attrgetter("fence")
#: Before every lease expires.
_LONG_AGO: Instant = -(1 << 62)


class Flights:
    """The open attempts and their tasks."""

    def __init__(self) -> None:
        self.attempts: dict[str, Attempt] = {}  # by task
        self.on_worker: Counter[str | None] = Counter()
        #: Since somebody took it: what changed, by task; None: it has landed. None of it: all.
        self.moved: dict[str, InFlight | None] | None = None
        self._as_leased: dict[str, InFlight] = {}  # as if no lease had expired
        self._shown: dict[str, InFlight] = {}
        self._in_order: list[InFlight] = []  # those shown, by seq
        self._tuple: tuple[InFlight, ...] | None = None
        self._expiries: list[tuple[Instant, str]] = []
        self._judged: set[str] = set()  # those that are shown as expired, or as gone

    def read(self, reading: Reading, policy: Policy, names: set[str] | None) -> None:
        """Take over these tasks; None: all, for the first time."""
        attempts = reading.open_attempts(names)
        flying = {attempt.task: attempt for attempt in attempts}
        if names is None:
            tasks = reading.in_flight() if attempts else []
        else:
            for name in names & self.attempts.keys():
                self._drop(name)
            for name in names - flying.keys():
                self._show(name, None)
            tasks = list(reading.tasks(flying).values()) if flying else []
        for task in tasks:
            self._keep(task, flying[task.id], policy)

    def expired(self, now: Instant) -> list[Attempt]:
        """The attempts whose lease is over, in the order in which they were leased."""
        end = bisect_left(self._expiries, (now + 1, ""))
        rows = [self.attempts[name] for _, name in self._expiries[:end]]
        return sorted(rows, key=_FENCE)

    def judge(self, facts: Facts, now: Instant) -> None:
        """Show which attempts live: it depends on the time, and on what executors say."""
        rows = {attempt.task: attempt for attempt in self.expired(now)}
        if facts.gone:
            rows |= {task: row for task, row in self.attempts.items() if row.lease in facts.gone}
        for name in self._judged - rows.keys():
            self._show(name, self._as_leased.get(name))
        self._judged = set(rows)
        for name, attempt in rows.items():
            flight, alive = self._as_leased[name], facts.alive(attempt, now)
            if flight.lease.alive != alive:
                flight = changed(flight, lease=changed(flight.lease, alive=alive))
            self._show(name, flight)

    def in_order(self) -> tuple[InFlight, ...]:
        """All of them, by seq."""
        if self._tuple is None:
            self._tuple = tuple(self._in_order)
        return self._tuple

    def take_moved(self) -> dict[str, InFlight | None] | None:
        """What has changed since this was asked last; None: anything."""
        moved, self.moved = self.moved, {}
        return moved

    # Inside

    def _keep(self, task: Task, attempt: Attempt, policy: Policy) -> None:
        self.attempts[task.id] = attempt
        self.on_worker[attempt.worker] += 1
        insort(self._expiries, (attempt.expires_at, task.id))
        flight = flight_of(task, attempt, policy, Facts().alive(attempt, _LONG_AGO))
        self._as_leased[task.id] = flight
        self._show(task.id, flight)

    def _drop(self, name: str) -> None:
        attempt = self.attempts.pop(name)
        self.on_worker[attempt.worker] -= 1
        del self._as_leased[name]
        del self._expiries[bisect_left(self._expiries, (attempt.expires_at, name))]

    def _show(self, name: str, flight: InFlight | None) -> None:
        known = self._shown.get(name)
        if known is flight or known == flight:
            return
        self._tuple = None
        if self.moved is not None:
            self.moved[name] = flight
        place = bisect_left(self._in_order, (known or flight).seq, key=_SEQ)  # type: ignore[union-attr]
        if flight is None:
            del self._shown[name], self._in_order[place]
            return
        self._shown[name] = flight
        if known is None:
            self._in_order.insert(place, flight)
        else:
            self._in_order[place] = flight


def flight_of(task: Task, attempt: Attempt, policy: Policy, alive: bool) -> InFlight:
    """A task in flight as planning sees it."""
    assert task.lease is not None
    used = counted(attempt.tokens, policy.usage.count)
    return InFlight(
        task=task.id,
        seq=task.seq,
        lane=task.lane,
        lease=changed(task.lease, used=used, alive=alive),
        status=task.status,
        workspace=attempt.workspace,
        max_attempts=task.max_attempts,
        launch_failures=task.launch_failures,
        stop_requested=task.stop_requested,
    )
