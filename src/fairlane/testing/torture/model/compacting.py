"""What is left when old history is compacted."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from fairlane.model.instant import DAY, Instant
from fairlane.model.project import PolicyText
from fairlane.model.task import Task
from fairlane.store.base import Place, Placed
from fairlane.store.parts import STAGES

if TYPE_CHECKING:
    from fairlane.testing.torture.model.rows import Book, Model

#: What a task that was compacted says of itself.
TOMBSTONE = {"compacted": True}


def compact(model: Model, before: Instant, place: Place, rest: Place | None) -> None:
    """What is old loses all but what it is counted and found by, between two places."""
    part = _Part(place, rest)
    for task in _finished(model, before):
        if part.has("tasks", task.ended_at, task.seq):
            model.forget(task.id)
            model.put_task(Placed(tombstone(task)))
    model.events = [
        event for event in model.events
        if event.at >= before or not part.has("events", event.number)
    ]  # fmt: skip
    _drop_decisions(model, before, part)
    for scope, book in model.books.items():
        minutes = [minute for minute in book.minutes if minute < before // DAY * DAY]
        _fold(book, [minute for minute in minutes if part.has("usage", scope, minute)])
    if rest is None:
        _drop_policies(model)


class _Part:
    """All that lies after one place, up to another."""

    def __init__(self, place: Place, rest: Place | None) -> None:
        self._begin, self._end = _rank(place), _rank(rest) if rest is not None else None

    def has(self, *place: Any) -> bool:
        """Whether this place lies there."""
        rank = _rank(place)
        return self._begin < rank and (self._end is None or rank <= self._end)


def _rank(place: Place) -> tuple[Any, ...]:
    return (STAGES.index(place[0]), *place[1:]) if place else ()


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


def _fold(book: Book, minutes: list[Instant]) -> None:
    """These minutes become part of their days."""
    rows = [(minute // DAY * DAY, book.rows.pop(minute)) for minute in minutes]
    book.minutes = [minute for minute in book.minutes if minute in book.rows]
    for day, amounts in rows:
        book.add(day, amounts)


def _drop_decisions(model: Model, before: Instant, part: _Part) -> None:
    """The oldest go, together with all that are recorded against the same lanes."""
    for _, run in groupby(sorted(model.decisions.items()), lambda row: row[1].base):
        rows = dict(run)
        if not part.has("decisions", min(rows)) or any(row.at >= before for row in rows.values()):
            break
        model.decisions = {n: row for n, row in model.decisions.items() if n not in rows}


def _drop_policies(model: Model) -> None:
    """Texts that no decision names, and that are not in force."""
    used = {decision.policy for decision in model.decisions.values()}
    used.add(model.values.get("policy", ""))
    texts = model.tables[PolicyText]
    model.tables[PolicyText] = {digest: row for digest, row in texts.items() if digest in used}
