"""What is left when old history is compacted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.model.instant import DAY, Instant
from fairlane.model.project import PolicyText
from fairlane.model.task import Task
from fairlane.store.base import Placed

if TYPE_CHECKING:
    from fairlane.testing.torture.model.rows import Book, Model

#: What a task that was compacted says of itself.
TOMBSTONE = {"compacted": True}


def compact(model: Model, before: Instant) -> None:
    """Finished tasks of that time lose all but what they are counted and found by."""
    for task in _finished(model, before):
        model.forget(task.id)
        model.put_task(Placed(tombstone(task)))
    model.events = [event for event in model.events if event.at >= before]
    for book in model.books.values():
        _fold(book, before // DAY * DAY)
    _drop_decisions(model, before)


def tombstone(task: Task) -> Task:
    """What remains of a finished task."""
    return Task(
        id=task.id, seq=task.seq, project=task.project, kind=task.kind, agent=task.agent,
        priority=task.priority, parent=task.parent, group=task.group, pool=task.pool,
        estimate_tokens=task.estimate_tokens, created_at=task.created_at,
        ready_since=task.ready_since, status=task.status, depth=task.depth,
        failures=task.failures, attempts=task.attempts, ended_at=task.ended_at, meta=TOMBSTONE,
    )  # fmt: skip


def _finished(model: Model, before: Instant) -> list[Task]:
    """Those that ended before, and that no unfinished task names."""
    rows = [placed.task for placed in model.tasks.values()]
    open_ = [task for task in rows if not task.status.final]
    named = {name for task in open_ for name in (*task.needs, task.parent) if name is not None}
    return [
        task
        for task in rows
        if task.ended_at is not None and task.ended_at < before
        and task.id not in named and task.meta != TOMBSTONE
    ]  # fmt: skip


def _fold(book: Book, midnight: Instant) -> None:
    """The minutes of days that are over become one row a day."""
    old = [minute for minute in book.minutes if minute < midnight]
    rows = [(minute // DAY * DAY, book.rows.pop(minute)) for minute in old]
    book.minutes = book.minutes[len(old) :]
    for day, amounts in rows:
        book.add(day, amounts)


def _drop_decisions(model: Model, before: Instant) -> None:
    """Older ones, unless a younger one builds on the same record; and unused policies."""
    rows = model.decisions
    bases = {decision.base for decision in rows.values() if decision.at >= before}
    model.decisions = {n: decision for n, decision in rows.items() if decision.base in bases}
    used = {decision.policy for decision in model.decisions.values()}
    used.add(model.values.get("policy", ""))
    texts = model.tables[PolicyText]
    model.tables[PolicyText] = {digest: row for digest, row in texts.items() if digest in used}
