"""The queue as a whole: pause, resume, clear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from fairlane.model.errors import Invalid, NotFound, Refused, did_you_mean
from fairlane.model.event import Happening
from fairlane.model.names import is_name
from fairlane.model.project import Project
from fairlane.model.resources import Pause
from fairlane.model.task import Status, Task
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.journal import Journal
from fairlane.service.reports.listing import PAGE, every, lineage
from fairlane.service.reports.pauses import pause_document
from fairlane.service.tasks import find, router_for
from fairlane.store.base import Filter, Placed, Reading, Writing

SORTS = ("project", "kind", "pool", "group", "task")
#: What `clear` cancels with.
CLEARED = "cleared"
#: How many ids of what is cleared are named.
IDS_NAMED = 1000


def pause(desk: Desk, scope: str = "all", reason: str = "") -> dict[str, Any]:
    """Nothing in the scope starts until it is resumed; twice is the same as once."""
    with desk.store.write() as tx:
        policy, now = desk.policy_for_reading(tx), desk.now()
        _check(desk, tx, scope)
        held = _pauses(tx).get(scope)
        if held is None:
            held = Pause(scope, desk.actor, now, reason)
            tx.put_pause(held)
            journal = Journal(tx, policy, now, desk.actor)
            task = _set_paused(journal, scope, True)
            journal.note("paused", task, scope=scope, reason=reason)
            journal.close()
            return {"schema": SCHEMA, "changed": True} | pause_document(held)
    return {"schema": SCHEMA, "changed": False} | pause_document(held)


def resume(desk: Desk, scope: str = "all") -> dict[str, Any]:
    """What was paused may start again; twice is the same as once."""
    with desk.store.write() as tx:
        policy, now = desk.policy_for_reading(tx), desk.now()
        _check(desk, tx, scope)
        held = _pauses(tx).get(scope)
        changed = held is not None
        journal = Journal(tx, policy, now, desk.actor)
        if held is not None:
            tx.drop_pause(scope)
        changed |= _reopen(tx, scope)
        task = _set_paused(journal, scope, False)
        if changed:
            journal.note("resumed", task, scope=scope)
        journal.close()
        still = [pause_document(each) for each in tx.pauses()]
    return {"schema": SCHEMA, "changed": changed, "scope": scope, "paused": still}


def clear(desk: Desk, scope: str = "all", *, dry_run: bool = False) -> dict[str, Any]:
    """Cancel the queued tasks of a scope; a dry run says which, and changes nothing."""
    told = _Told(scope, dry_run)
    if dry_run:
        with desk.store.read() as reading:
            _check(desk, reading, scope)
            for placed in _queued(reading, scope):
                told.enter(placed.task)
        return told.document()
    with desk.store.write() as tx:
        _check(desk, tx, scope)
        journal = Journal(tx, desk.policy(), desk.now(), desk.actor)
        found = _queued(tx, scope)
        while page := [placed.task for placed in islice(found, PAGE)]:
            statuses = tx.statuses(task.id for task in page)  # some may have gone with others
            for task in page:
                if statuses[task.id] is Status.QUEUED:
                    told.enter(task)
                    journal.happen(task, Happening.CANCEL, detail=CLEARED)
            journal.close()
        if told.count:
            journal.note("cleared", scope=scope, count=told.count)
        journal.close()
    return told.document()


class _Told:
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

    def document(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "scope": self._scope,
            "dry_run": self._dry_run,
            "count": self.count,
            "tasks": self._ids,  # the first thousand
            "by_kind": dict(sorted(self._kinds.items())),
            "by_project": dict(sorted(self._projects.items())),
        }


def _pauses(reading: Reading) -> dict[str, Pause]:
    return {each.scope: each for each in reading.pauses()}


def _check(desk: Desk, reading: Reading, scope: str) -> None:
    """A scope that names something; what is not known is named, with the nearest."""
    if scope == "all":
        return
    sort, _, name = scope.partition(":")
    if sort not in SORTS or not name:
        known = ["all", *(f"{each}:NAME" for each in SORTS)]
        near = did_you_mean(f"{sort}:NAME", known)
        hint = near if near.startswith("Did") else f"Accepted: {', '.join(known)}."
        raise Invalid(f"not a scope: {scope!r}", hint)
    if sort == "project":
        router_for(desk, reading).project(name)
    elif sort == "group":
        lineage(reading, name)
    elif sort == "task":
        find(reading, [name])
    elif not is_name(name):
        raise Invalid(f"not a {sort} name: {name!r}", "Use letters, digits, '.', '_' or '-'.")
    elif sort == "pool":
        known_pools = {*desk.settings.known_pools(), *reading.pools()}
        if name not in known_pools and not reading.listing(Filter(pool=name), limit=1):
            near = did_you_mean(name, known_pools)
            raise NotFound(f"there is no pool {name!r}", near, code="unknown_pool")


def _set_paused(journal: Journal, scope: str, paused: bool) -> Task | None:
    """A task that is paused by itself waits, outside its lane."""
    if not scope.startswith("task:"):
        return None
    task = find(journal.tx, [scope[5:]])[scope[5:]]
    if task.status.final and paused:
        raise Refused(f"{task.id} is {task.status}", "Only what can still start can be paused.")
    if task.paused != paused:
        journal.keep(replace(task, paused=paused))
    return task


def _reopen(tx: Writing, scope: str) -> bool:
    """A project whose own status is `paused` is active again."""
    sort, _, name = scope.partition(":")
    project: Project | None = tx.projects().get(name) if sort == "project" else None
    if project is None or project.status != "paused":
        return False
    tx.put_project(replace(project, status="active"))
    return True


def _queued(reading: Reading, scope: str) -> Iterator[Placed]:
    """The queued tasks of a scope."""
    queued = Filter(status=(Status.QUEUED,))
    sort, _, name = scope.partition(":")
    if sort == "task":
        placed = reading.placed(name)
        return iter([placed] if placed and placed.task.status is Status.QUEUED else [])
    if sort == "group":
        names = lineage(reading, name)
        return (each for group in names for each in every(reading, replace(queued, group=group)))
    if scope == "all":
        return every(reading, queued)
    held: Any = {sort: name}
    return every(reading, replace(queued, **held))
