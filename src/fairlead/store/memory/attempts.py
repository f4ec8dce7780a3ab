"""The attempts: by lease, by task, those that are open, and those that ended by time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from fairlead.model.instant import Instant
from fairlead.model.task import Lease, Task
from fairlead.store.base import Attempt, HistoryRow
from fairlead.store.memory.ordered import Ordered, give, take
from fairlead.store.memory.queue import Queue
from fairlead.store.memory.rows import Row

Ended = tuple[Instant, int, str]  # when, fence, lease
HistoryKey = tuple[str, str, str | None]  # project, kind, agent


class Attempts(Queue):
    """Every attempt that is not compacted."""

    def __init__(self) -> None:
        super().__init__()
        self._attempts: dict[str, Attempt] = {}
        self._tries: dict[str, Ordered[tuple[int, int, str]]] = {}  # of a task: number, fence
        self._open: dict[str, Ordered[tuple[int, str]]] = {}  # of a task: fence, lease
        self._leases: dict[str, Lease] = {}  # of open attempts, as tasks show them
        self._ended: Ordered[Ended] = Ordered()
        self._history: dict[HistoryKey, Ordered[Ended]] = {}

    def attempt(self, lease: str) -> Attempt | None:
        """The attempt that has or had this lease."""
        return self._attempts.get(lease)

    def attempts(self, task: str) -> list[Attempt]:
        """The attempts of a task, in their order."""
        return [self._attempts[lease] for _, _, lease in self._tries.get(task, ())]

    def open_attempts(self) -> list[Attempt]:
        """Those whose lease has not ended, by fence."""
        found = sorted(each for tries in self._open.values() for each in tries)
        return [self._attempts[lease] for _, lease in found]

    def ended_attempts(self, since: Instant, limit: int) -> list[tuple[Attempt, Task]]:
        """Those that ended since then, the newest first, with their task."""
        found: list[tuple[Attempt, Task]] = []
        for at, _, lease in reversed(self._ended):
            if at < since or len(found) >= limit:
                break
            attempt = self._attempts[lease]
            row = self._rows.get(attempt.task)
            if row is not None:
                found.append((attempt, self._shown(row).task))
        return found

    def recent(self, per_key: int) -> list[HistoryRow]:
        """Of each (project, kind, agent) the newest ended attempts that tell their usage."""
        rows = []
        for key, ended in self._history.items():
            for _, _, lease in islice(reversed(ended), per_key):
                attempt = self._attempts[lease]
                rows.append(HistoryRow(*key, attempt.tokens, attempt.usd))
        return rows

    def put_attempts(self, attempts: Sequence[Attempt]) -> None:
        """New attempts, and known ones as they are now."""
        for attempt in attempts:
            self._change_attempt(self._attempts.get(attempt.lease), attempt)

    def _lease_of(self, task: str) -> Lease | None:
        tries = self._open.get(task)
        if tries is None:
            return None
        *_, (_, lease) = tries
        return self._leases[lease]

    def _change_attempt(self, old: Attempt | None, new: Attempt | None) -> None:
        self._note(self._swap_attempt, new, old)
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
        give(self._tries, attempt.task, (attempt.number, attempt.fence, lease))
        if attempt.ended_at is None:
            give(self._open, attempt.task, (attempt.fence, lease))
            self._leases[lease] = lease_of(attempt)
            return
        ended = (attempt.ended_at, attempt.fence, lease)
        self._ended.add(ended)
        row = self._rows.get(attempt.task)
        if row is not None and _tells(attempt):
            give(self._history, _key(row), ended)

    def _take_out(self, attempt: Attempt) -> None:
        lease = attempt.lease
        del self._attempts[lease]
        take(self._tries, attempt.task, (attempt.number, attempt.fence, lease))
        if attempt.ended_at is None:
            take(self._open, attempt.task, (attempt.fence, lease))
            del self._leases[lease]
            return
        ended = (attempt.ended_at, attempt.fence, lease)
        self._ended.remove(ended)
        row = self._rows.get(attempt.task)
        if row is not None and _tells(attempt):
            take(self._history, _key(row), ended)

    def _swap_names(self, old: Row | None, new: Row | None) -> None:
        """What a task's attempts tell belongs to what the task is now."""
        super()._swap_names(old, new)
        row = new or old
        for attempt in self.attempts(row.placed.task.id) if row is not None else ():
            if attempt.ended_at is None or not _tells(attempt):
                continue
            ended = (attempt.ended_at, attempt.fence, attempt.lease)
            if old is not None:
                take(self._history, _key(old), ended)
            if new is not None:
                give(self._history, _key(new), ended)


def lease_of(attempt: Attempt) -> Lease:
    """What a task in flight shows of its open attempt; what it has used only rules can tell."""
    return Lease(
        id=attempt.lease,
        fence=attempt.fence,
        attempt=attempt.number,
        worker=attempt.worker,
        expires_at=attempt.expires_at,
        started_at=attempt.leased_at,
        estimate=attempt.estimate,
        direct=attempt.direct,
    )


def _key(row: Row) -> HistoryKey:
    task = row.placed.task
    return task.project, task.kind, task.agent


def _tells(attempt: Attempt) -> bool:
    """Whether it says what it has used."""
    return any(attempt.tokens)
