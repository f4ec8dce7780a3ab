"""The attempts: by lease, by task, those that are open, and those that ended by time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from fairlane.model.errors import Refused
from fairlane.model.instant import Instant
from fairlane.model.record import changed
from fairlane.model.task import Attempt, Lease, Task, lease_of
from fairlane.store.base import HistoryRow
from fairlane.store.memory.ordered import Ordered, give, take
from fairlane.store.memory.queue import Queue

#: How many of the newest attempts of one sort are kept at hand.
NEWEST = 64
Ended = tuple[Instant, int, str]  # when, fence, lease
HistoryKey = tuple[str, str, str | None]  # project, kind, agent


class Attempts(Queue):
    """Every attempt that is not compacted."""

    def __init__(self) -> None:
        super().__init__()
        self._attempts: dict[str, Attempt] = {}
        self._tries: dict[str, dict[int, str]] = {}  # of a task: leases by number
        self._fences: dict[int, str] = {}  # whose lease
        self._open: dict[str, str] = {}  # of a task, the lease that has not ended
        self._leases: dict[str, Lease] = {}  # of open attempts, as tasks show them
        self._ended: Ordered[Ended] = Ordered()
        self._used: dict[HistoryKey, Ordered[Ended]] = {}
        self._newest: dict[HistoryKey, deque[HistoryRow]] = {}  # what was read of them

    def attempt(self, lease: str) -> Attempt | None:
        return self._attempts.get(lease)

    def attempts(self, task: str) -> list[Attempt]:
        tries = self._tries.get(task, {})
        return [self._attempts[tries[number]] for number in sorted(tries)]

    def open_attempts(self, tasks: Iterable[str] | None = None) -> list[Attempt]:
        leases: Iterable[str] = self._open.values()
        if tasks is not None:
            leases = [self._open[task] for task in set(tasks) if task in self._open]
        rows = [self._attempts[lease] for lease in leases]
        return sorted(rows, key=lambda attempt: attempt.fence)

    def ended_attempts(self, since: Instant, limit: int) -> list[tuple[Attempt, Task]]:
        rows: list[tuple[Attempt, Task]] = []
        for at, _, lease in reversed(self._ended):
            if at < since or len(rows) >= limit:
                break
            attempt = changed(self._attempts[lease], work=None)
            rows.append((attempt, self._shown(self._rows[attempt.task]).task))
        return rows

    def recent(self, project: str, kind: str, agent: str | None, limit: int) -> list[HistoryRow]:
        key = (project, kind, agent)
        ended = self._used.get(key, Ordered())
        if limit > NEWEST:
            return [self._history_row(lease) for _, _, lease in islice(reversed(ended), limit)]
        newest = self._newest.get(key)
        if newest is None:
            rows = [self._history_row(lease) for _, _, lease in islice(reversed(ended), NEWEST)]
            newest = self._newest[key] = deque(rows, NEWEST)
        return list(islice(newest, limit))

    def put_attempts(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            old = self._attempts.get(attempt.lease)
            self._check(attempt, old)
            self._change_attempt(old, attempt)

    def _check(self, attempt: Attempt, old: Attempt | None) -> None:
        """Refuses what must never be true of an attempt."""
        name = f"attempt {attempt.number} of task {attempt.task}"
        if attempt.task not in self._rows:
            raise Refused(f"{name}: there is no such task")
        if (attempt.ended_at is None) != (attempt.outcome is None):
            raise Refused(f"{name}: it ends with an outcome, and only then")
        if self._fences.get(attempt.fence, attempt.lease) != attempt.lease:
            raise Refused(f"{name}: fence {attempt.fence} was given to another lease")
        if old is not None and (old.task, old.fence) != (attempt.task, attempt.fence):
            raise Refused(f"{name}: lease {attempt.lease} is that of another attempt")
        tries = self._tries.get(attempt.task, {})
        if tries.get(attempt.number, attempt.lease) != attempt.lease:
            raise Refused(f"{name}: it has been made already")
        others = self._open.get(attempt.task, attempt.lease)
        if attempt.ended_at is None and others != attempt.lease:
            raise Refused(f"{name}: lease {others} has not ended")

    def _history_row(self, lease: str) -> HistoryRow:
        row = self._attempts[lease]
        return HistoryRow(row.project, row.kind, row.agent, row.tokens, row.usd)

    def _lease_of(self, task: str) -> Lease | None:
        lease = self._open.get(task)
        return self._leases[lease] if lease is not None else None

    def _change_attempt(self, old: Attempt | None, new: Attempt | None) -> None:
        self._note(self._swap_attempt, new, old)
        for attempt in (old, new):
            if attempt is not None:
                self._news.flights.add(attempt.task)
        self._swap_attempt(old, new)

    def _swap_attempt(self, old: Attempt | None, new: Attempt | None) -> None:
        """From one value of an attempt to another; its own opposite."""
        if old is not None:
            self._take_out(old)
        if new is not None:
            self._put_in(new)

    def _put_in(self, attempt: Attempt) -> None:
        lease = attempt.lease
        self._attempts[lease] = attempt
        self._fences[attempt.fence] = lease
        self._tries.setdefault(attempt.task, {})[attempt.number] = lease
        if attempt.ended_at is None:
            self._open[attempt.task] = lease
            self._leases[lease] = lease_of(attempt)
            return
        ended = (attempt.ended_at, attempt.fence, lease)
        self._ended.add(ended)
        if any(attempt.tokens):
            self._put_in_used((attempt.project, attempt.kind, attempt.agent), ended)

    def _put_in_used(self, key: HistoryKey, ended: Ended) -> None:
        give(self._used, key, ended)
        newest = self._newest.get(key)
        if newest is not None:
            if self._used[key].last() == ended:
                newest.appendleft(self._history_row(ended[2]))
            else:
                del self._newest[key]

    def _take_out(self, attempt: Attempt) -> None:
        lease = attempt.lease
        del self._attempts[lease]
        del self._fences[attempt.fence]
        del self._tries[attempt.task][attempt.number]
        if not self._tries[attempt.task]:
            del self._tries[attempt.task]
        if attempt.ended_at is None:
            del self._open[attempt.task]
            del self._leases[lease]
            return
        ended = (attempt.ended_at, attempt.fence, lease)
        self._ended.remove(ended)
        if any(attempt.tokens):
            key = (attempt.project, attempt.kind, attempt.agent)
            take(self._used, key, ended)
            self._newest.pop(key, None)
