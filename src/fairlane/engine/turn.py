"""One transaction over some leases: their rows, and what is written about them."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.engine.context import Context
from fairlane.engine.end_attempt import ended_error, unknown_lease
from fairlane.engine.task_changes import TaskChanges
from fairlane.engine.usage import Books, close_books
from fairlane.model.errors import FairlaneError
from fairlane.model.event import Happening
from fairlane.model.instant import Instant
from fairlane.model.record import changed, dataclass, field
from fairlane.model.task import Attempt, Status, Task
from fairlane.store.base import Writing


@dataclass(frozen=True, slots=True)
class Renewed:
    """What holders learn about their leases."""

    tasks: dict[str, Task] = field(default_factory=dict)  # by lease: those that it still holds
    lost: dict[str, FairlaneError] = field(default_factory=dict)  # by lease: why it has ended
    expires_at: Instant = 0

    @property
    def stop(self) -> dict[str, str]:
        """The leases whose attempt must stop, and why."""
        return {
            lease: task.stop_requested for lease, task in self.tasks.items() if task.stop_requested
        }


class Turn:
    """One transaction over some leases: their rows, and what is written about them."""

    def __init__(self, context: Context, tx: Writing, leases: Iterable[str]) -> None:
        self.settings = context.settings
        self.by_attempt = context.lease is not None  # else by a person, or a program of theirs
        self.policy = context.policy_for_reading(tx)
        self.now = context.now()
        self.changes = TaskChanges(tx, self.policy, self.now, context.actor)
        self.books = Books(tx, self.policy, self.now)
        rows = {lease: tx.attempt(lease) for lease in leases}
        self.attempts = {lease: row for lease, row in rows.items() if row is not None}
        self._unknown = [lease for lease, row in rows.items() if row is None]
        self._tasks = tx.tasks({attempt.task for attempt in self.attempts.values()})

    def open(self) -> dict[str, Attempt]:
        """Those whose lease has not ended."""
        return {lease: row for lease, row in self.attempts.items() if row.ended_at is None}

    def task_of(self, attempt: Attempt) -> Task:
        """The task of an attempt, as it is by now."""
        return self._tasks[attempt.task]

    def keep(self, task: Task) -> Task:
        """The task as it is from now on."""
        self._tasks[task.id] = task
        return task

    def start(self, attempt: Attempt) -> None:
        """Keep an attempt as it is now; the first sign of life makes its task running."""
        task = self.task_of(attempt)
        if task.status is Status.LEASED and holds(task, attempt):
            begun = attempt.started_at or max(self.now, attempt.leased_at)
            attempt = changed(attempt, started_at=begun)
            self.keep(self.changes.happen(task, Happening.STARTED).task)
        self.books.keep(attempt)

    def close(self) -> dict[str, Task]:
        """Write everything; the tasks that a budget stops now, by id."""
        stopped = close_books(self.changes, self.books)
        self._tasks |= {name: stopped[name] for name in stopped if name in self._tasks}
        return stopped

    def renewed(self, expires_at: Instant = 0) -> Renewed:
        """What the holders learn."""
        tasks = {lease: self.task_of(attempt) for lease, attempt in self.open().items()}
        lost: dict[str, FairlaneError] = {lease: unknown_lease(lease) for lease in self._unknown}
        for lease, attempt in self.attempts.items():
            if attempt.ended_at is not None:
                lost[lease] = ended_error(attempt)
        return Renewed(tasks, lost, expires_at)


def holds(task: Task, attempt: Attempt) -> bool:
    """Whether the task is leased to this attempt."""
    return task.lease is not None and task.lease.id == attempt.lease
