"""The queue as a whole: pause, resume, clear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from fairlane.engine.context import Context
from fairlane.engine.task_changes import TaskChanges
from fairlane.model.errors import Invalid, NotFound, Refused, did_you_mean
from fairlane.model.event import Happening
from fairlane.model.names import SCHEMA
from fairlane.model.project import Pause, Pool, Project
from fairlane.model.task import Status, Task
from fairlane.model.values import is_name
from fairlane.service.reports.documents import pause_document
from fairlane.service.reports.listing import PAGE, every, lineage
from fairlane.service.tasks import find, router_for
from fairlane.store.base import Filter, Placed, Reading, Writing

if TYPE_CHECKING:
    from fairlane.model.documents.admin import ClearedAnswer, PausedAnswer, ResumedAnswer

SORTS = ("project", "kind", "pool", "group", "task")
#: What `clear` cancels with.
CLEARED = "cleared"
#: How many ids of what is cleared are named.
IDS_NAMED = 1000


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
    """Cancel the queued tasks of a scope; a dry run only lists them."""
    cleared = _Cleared(scope, dry_run)
    if dry_run:
        with context.store.read() as reading:
            _check(context, reading, scope)
            for placed in _queued(reading, scope):
                cleared.enter(placed.task)
        return cleared.document()
    with context.store.write() as tx:
        _check(context, tx, scope)
        task_changes = TaskChanges(tx, context.policy(), context.now(), context.actor)
        queued = _queued(tx, scope)
        while page := [placed.task for placed in islice(queued, PAGE)]:
            statuses = tx.statuses(task.id for task in page)  # some may have gone with others
            for task in page:
                if statuses[task.id] is Status.QUEUED:
                    cleared.enter(task)
                    task_changes.happen(task, Happening.CANCEL, detail=CLEARED)
            task_changes.close()
        if cleared.count:
            task_changes.note("cleared", scope=scope, count=cleared.count)
        task_changes.close()
    return cleared.document()


class _Cleared:
    """What is cleared, counted."""

    def __init__(self, scope: str, dry_run: bool) -> None:
        self._scope, self._dry_run, self.count = scope, dry_run, 0
        self._ids: list[str] = []
        self._kinds: Counter[str] = Counter()
        self._projects: Counter[str] = Counter()

    def enter(self, task: Task) -> None:
        self.count += 1
        self._kinds[task.kind] += 1
        self._projects[task.project] += 1
        if self.count <= IDS_NAMED:
            self._ids.append(task.id)

    def document(self) -> ClearedAnswer:
        return {
            "schema": SCHEMA,
            "scope": self._scope,
            "dry_run": self._dry_run,
            "count": self.count,
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


def _queued(reading: Reading, scope: str) -> Iterator[Placed]:
    """The queued tasks of a scope."""
    queued = Filter(status=(Status.QUEUED,))
    sort, _, name = scope.partition(":")
    if sort == "task":
        placed = reading.placed(name)
        return iter([placed] if placed and placed.task.status is Status.QUEUED else [])
    if sort == "group":
        return chain.from_iterable(
            every(reading, replace(queued, group=group)) for group in lineage(reading, name)
        )
    narrowed = {
        "project": replace(queued, project=name),
        "kind": replace(queued, kind=name),
        "pool": replace(queued, pool=name),
    }
    return every(reading, narrowed.get(sort, queued))
