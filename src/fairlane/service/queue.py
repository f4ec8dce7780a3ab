"""The queue as a whole: pause, resume, clear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from fairlane.engine.context import Context
from fairlane.engine.task_changes import TaskChanges
from fairlane.model.errors import (
    Interrupted,
    Invalid,
    NotFound,
    Refused,
    TryLater,
    did_you_mean,
)
from fairlane.model.event import Happening
from fairlane.model.names import SCHEMA
from fairlane.model.project import Pause, Pool, Project
from fairlane.model.record import replace
from fairlane.model.task import Status, Task
from fairlane.model.values import is_name
from fairlane.service.reports.documents import pause_document
from fairlane.service.reports.listing import PAGE, every, lineage
from fairlane.service.tasks import find, router_for
from fairlane.store.base import Filter, Reading, Writing

if TYPE_CHECKING:
    from fairlane.model.documents.admin import ClearedAnswer, PausedAnswer, ResumedAnswer

SORTS = ("project", "kind", "pool", "group", "task")
#: What `clear` cancels with.
CLEARED = "cleared"
#: How many ids of what is cleared are named.
IDS_NAMED = 1000
#: How many tasks one transaction of `clear` cancels.
PART = 500
_CLEAR_AGAIN = "Run `fairlane clear` again for the rest."


def pause(context: Context, scope: str = "all", reason: str = "") -> PausedAnswer:
    """Start nothing more: all, or a project, kind, pool, group, task."""
    with context.store.write() as tx:
        policy, now = context.policy_for_reading(tx), context.now()
        _check(context, tx, scope)
        current = tx.table(Pause).get(scope)
        changed = current is None
        if current is None:
            current = Pause(scope, context.actor, now, reason)
            tx.put(current)
            task_changes = TaskChanges(tx, policy, now, context.actor)
            task = _set_paused(task_changes, scope, True)
            task_changes.note("paused", task, scope=scope, reason=reason)
            task_changes.close()
    return {"schema": SCHEMA, "changed": changed, **pause_document(current)}


def resume(context: Context, scope: str = "all") -> ResumedAnswer:
    """Start again what was paused."""
    with context.store.write() as tx:
        policy, now = context.policy_for_reading(tx), context.now()
        _check(context, tx, scope)
        current = tx.table(Pause).get(scope)
        changed = current is not None
        task_changes = TaskChanges(tx, policy, now, context.actor)
        if current is not None:
            tx.drop(Pause, scope)
        changed |= _reopen(tx, scope)
        task = _set_paused(task_changes, scope, False)
        if changed:
            task_changes.note("resumed", task, scope=scope)
        task_changes.close()
        still = [pause_document(row) for row in tx.table(Pause).values()]
    return {"schema": SCHEMA, "changed": changed, "scope": scope, "paused": still}


def clear(context: Context, scope: str = "all", *, dry_run: bool = False) -> ClearedAnswer:
    """Cancel the queued tasks of a scope; a dry run only lists them.

    Many are canceled in parts, so that others write between them. What an interruption or an
    error leaves, the next call cancels.
    """
    cleared = _Cleared(scope, dry_run)
    with context.store.read() as reading:
        _check(context, reading, scope)
        which = _queued(reading, scope)
        if dry_run:
            for each in which:
                matching = every(reading, each.filter, each.after)
                cleared.enter(takewhile(each.is_before_end, (row.task for row in matching)))
    if not dry_run:
        try:
            for each in which:
                _clear_matching(context, each, cleared)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted: {cleared.so_far}", _CLEAR_AGAIN) from None
        except TryLater as error:
            message = f"{error.message} ({cleared.so_far})"
            raise TryLater(message, f"{error.hint} {_CLEAR_AGAIN}", error.error_code) from error
    return cleared.document()


def _clear_matching(context: Context, which: _Which, cleared: _Cleared) -> None:
    """Cancel all that match now, in parts; what is added meanwhile stays."""
    after, end = which.after, which.end
    while True:
        began = context.clock.monotonic()
        with context.store.write() as tx:
            end = tx.number("seq", 0) if end is None else end
            page = [placed.task for placed in tx.listing(which.filter, after, PART)]
            tasks = [task for task in page if task.seq < end]
            canceled = _cancel(context, tx, tasks, cleared.scope)
        cleared.enter(canceled)
        if len(tasks) < PART:
            return
        after = tasks[-1].seq
        context.give_way(began)


def _cancel(context: Context, tx: Writing, tasks: list[Task], scope: str) -> list[Task]:
    """Cancel these; some may go with others before it is their turn."""
    changes = TaskChanges(tx, context.policy(), context.now(), context.actor)
    canceled: list[Task] = []
    remaining = iter(tasks)
    while page := list(islice(remaining, PAGE)):
        statuses = tx.statuses(task.id for task in page)
        for task in page:
            if statuses[task.id] is Status.QUEUED:
                canceled.append(task)
                changes.happen(task, Happening.CANCEL, detail=CLEARED)
        changes.close()
    if canceled:
        changes.note("cleared", scope=scope, count=len(canceled))
    changes.close()
    return canceled


class _Cleared:
    """What is cleared, counted."""

    def __init__(self, scope: str, dry_run: bool) -> None:
        self.scope, self._dry_run, self._count = scope, dry_run, 0
        self._ids: list[str] = []
        self._kinds: Counter[str] = Counter()
        self._projects: Counter[str] = Counter()

    def enter(self, tasks: Iterable[Task]) -> None:
        """These are durable, or would be."""
        for task in tasks:
            self._count += 1
            self._kinds[task.kind] += 1
            self._projects[task.project] += 1
            if self._count <= IDS_NAMED:
                self._ids.append(task.id)

    @property
    def so_far(self) -> str:
        """For an error half way."""
        return f"{self._count:,} {'task was' if self._count == 1 else 'tasks were'} cleared"

    def document(self) -> ClearedAnswer:
        return {
            "schema": SCHEMA,
            "scope": self.scope,
            "dry_run": self._dry_run,
            "count": self._count,
            "tasks": self._ids,  # the first thousand
            "by_kind": dict(sorted(self._kinds.items())),
            "by_project": dict(sorted(self._projects.items())),
        }


def _check(context: Context, reading: Reading, scope: str) -> None:
    """A scope that names something; what is not known is named, with the nearest."""
    if scope == "all":
        return
    sort, _, name = scope.partition(":")
    if sort not in SORTS or not name:
        known = ["all", *(f"{word}:NAME" for word in SORTS)]
        near = did_you_mean(f"{sort}:NAME", known)
        hint = near if near.startswith("Did") else f"Accepted: {', '.join(known)}."
        raise Invalid(f"not a scope: {scope!r}", hint)
    if sort == "project":
        router_for(context, reading).project(name)
    elif sort == "group":
        lineage(reading, name)
    elif sort == "task":
        find(reading, [name])
    elif not is_name(name):
        raise Invalid(f"not a {sort} name: {name!r}", "Use letters, digits, '.', '_' or '-'.")
    elif sort == "pool":
        known_pools = {*context.settings.known_pools(), *reading.table(Pool)}
        if name not in known_pools and not reading.listing(Filter(pool=name), limit=1):
            near = did_you_mean(name, known_pools)
            raise NotFound(f"there is no pool {name!r}", near, code="unknown_pool")


def _set_paused(task_changes: TaskChanges, scope: str, paused: bool) -> Task | None:
    """A task that is paused by itself waits, outside its lane."""
    if not scope.startswith("task:"):
        return None
    task = find(task_changes.tx, [scope[5:]])[scope[5:]]
    if task.status.final and paused:
        raise Refused(f"{task.id} is {task.status}", "Only what can still start can be paused.")
    if task.paused != paused:
        task_changes.keep(replace(task, paused=paused))
    return task


def _reopen(tx: Writing, scope: str) -> bool:
    """A project whose own status is `paused` is active again."""
    sort, _, name = scope.partition(":")
    project: Project | None = tx.table(Project).get(name) if sort == "project" else None
    if project is None or project.status != "paused":
        return False
    tx.put(replace(project, status="active"))
    return True


class _Which(NamedTuple):
    """Tasks that match, and whose `seq` is between these two; no `end`: all that there are now."""

    filter: Filter
    after: int = 0
    end: int | None = None

    def is_before_end(self, task: Task) -> bool:
        """Whether this task belongs to them."""
        return self.end is None or task.seq < self.end


def _queued(reading: Reading, scope: str) -> list[_Which]:
    """The queued tasks of a scope."""
    queued = Filter(status=(Status.QUEUED,))
    sort, _, name = scope.partition(":")
    if sort == "task":
        seq = find(reading, [name])[name].seq
        return [_Which(queued, seq - 1, seq + 1)]
    if sort == "group":
        return [_Which(replace(queued, group=group)) for group in lineage(reading, name)]
    narrowed = {
        "project": replace(queued, project=name),
        "kind": replace(queued, kind=name),
        "pool": replace(queued, pool=name),
    }
    return [_Which(narrowed.get(sort, queued))]
