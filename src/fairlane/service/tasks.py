"""Tasks as operations: add, edit, list, show, cancel, retry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairlane.intake import fields
from fairlane.intake.backpressure import measure
from fairlane.intake.position import positions
from fairlane.intake.records import Records
from fairlane.intake.routing import DEFAULT_PROJECT, Router
from fairlane.intake.submit import Batch, submit
from fairlane.model.errors import Invalid, NotFound, Refused
from fairlane.model.event import Event, Happening
from fairlane.model.instant import Instant
from fairlane.model.project import Project
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.journal import Journal, note_rules
from fairlane.service.reports import documents
from fairlane.service.reports.holds import Holds
from fairlane.service.reports.listing import every, lineage, list_tasks, show
from fairlane.service.slots import slots_of
from fairlane.store.base import Filter, Reading, Writing

#: Fields that are what a task is; another one is another task.
FIXED = ("id", "parent", "needs")
__all__ = [
    "Undone", "add", "cancel", "edit", "edited", "enter", "find", "list_tasks", "retry",
    "router_for", "show",
]  # fmt: skip


class Undone(Exception):
    """Carries the answer out of a transaction that must leave no trace."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__("undone")
        self.document = document


def add(
    desk: Desk,
    records: Records | Iterable[Mapping[str, Any]],
    *,
    defaults: Mapping[str, Any] | None = None,
    group: str | None = None,
    again: bool = False,
    force: bool = False,
    chain: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Add tasks, all or none; ids that are known are returned as they are.

    `defaults` are fields for records that do not give them; `chain`: each needs the one before;
    `again` puts back what is done or canceled; `force` lets an id have another project's prefix.
    """
    given = records if isinstance(records, Records) else Records.of(list(records))
    fill = dict(defaults or {}) | ({"group": group} if group is not None else {})
    try:
        with desk.store.write() as tx:
            policy, now = desk.policy(), desk.now()  # as of the turn, not of the wait for it
            router = router_for(desk, tx, force)
            batch = submit(tx, router, policy, now, given, fill, chain)
            document = enter(desk, tx, router, policy, now, batch, again)
            if dry_run or document["deferred"]:
                raise Undone(document | ({"dry_run": True} if dry_run else {}))
    except Undone as undone:
        return undone.document
    return document


def router_for(desk: Desk, reading: Reading, force: bool = False) -> Router:
    """Projects and groups as they are now; the project `default` always exists."""
    projects = {DEFAULT_PROJECT: Project(DEFAULT_PROJECT)} | reading.projects()
    return Router(projects, reading.groups(), desk.settings, desk.home, force)


def enter(
    desk: Desk,
    tx: Writing,
    router: Router,
    policy: Policy,
    now: Instant,
    batch: Batch,
    again: bool,
    origin: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write what came in, unless the queue is too deep for it. `origin`: for the event log."""
    ended = [name for name, status in batch.known.items() if again and status.final]
    returning = tx.tasks(ended) if ended else {}
    warnings: dict[str, str] = {}
    pressure = measure(tx, policy, slots_of(desk.settings, policy), now)
    if pressure is not None and (batch.new or returning):
        for task in (*(placed.task for placed in batch.new.values()), *returning.values()):
            warnings[task.id] = pressure.enter(task.kind)
        too_deep = pressure.too_deep()
        if too_deep:
            return _deferred(too_deep)
    for made in router.new_groups:
        tx.put_group(made)
    if batch.new:
        tx.insert(list(batch.new.values()))
        if any(placed.task.needs or placed.task.parent for placed in batch.new.values()):
            note_rules(tx, policy)
        by = {"by": desk.actor, **(origin or {})}
        tasks = [placed.task for placed in batch.new.values()]
        tx.log([Event(0, now, "added", task.id, task.project, by) for task in tasks])
    journal = Journal(tx, policy, now, desk.actor)
    for task in returning.values():
        batch.known[task.id] = journal.happen(task, Happening.AGAIN).task.status
    journal.close()
    return _added(tx, policy, now, batch, warnings)


def _deferred(why: str) -> dict[str, Any]:
    """Nothing is stored; the caller may come again."""
    hint = "Nothing was added: add fewer, come later, or raise backpressure.hard."
    told = {"code": "deferred", "message": f"deferred: {why}", "hint": hint}
    return {"schema": SCHEMA, "tasks": [], "deferred": True} | told


def _added(
    tx: Writing, policy: Policy, now: Instant, batch: Batch, warnings: Mapping[str, str]
) -> dict[str, Any]:
    ready = [placed.task for placed in batch.new.values() if not placed.wait]
    places = positions(tx, policy, now, ready)
    rows: list[dict[str, Any]] = []
    fresh = set(batch.new)
    for name in batch.ids:
        created = name in fresh
        status = "queued" if name not in batch.known else str(batch.known[name])
        row = {"id": name, "created": created, "status": status, "position": places.get(name)}
        fresh.discard(name)  # named a second time, it is known
        if warnings.get(name):
            row["warning"] = warnings[name]
        rows.append(row)
    return {"schema": SCHEMA, "tasks": rows, "deferred": False}


def edit(desk: Desk, ids: Sequence[str], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Change fields of tasks that have not started; null puts a field back to its default."""
    for name in changes:
        if name in FIXED:
            hint = "Cancel the task, and add another one."
            raise Invalid(f"field {name!r} cannot be changed", hint)
    values = fields.read(changes)
    empty = fields.defaults(name for name, value in changes.items() if value is None)
    if not values and not empty:
        raise Invalid("there is nothing to change", "Give a field, such as --priority 10.")
    with desk.store.write() as tx:
        policy, now = desk.policy(), desk.now()  # as of the turn, not of the wait for it
        journal = Journal(tx, policy, now, desk.actor)
        router = router_for(desk, tx)
        after = [
            journal.settle(edited(router, task, values, empty, now))
            for task in find(tx, ids).values()
        ]
        for made in router.new_groups:
            tx.put_group(made)
        tx.rewrite(after)
        for placed in after:
            journal.note("edited", placed.task, fields=sorted({*values, *empty}))
        journal.close()
        holds = Holds(desk, tx).of(after)
    rows = [documents.row(placed, holds.get(placed.task.id)) for placed in after]
    return {"schema": SCHEMA, "tasks": rows}


def edited(
    router: Router, task: Task, values: dict[str, Any], empty: dict[str, Any], now: Instant
) -> Task:
    """The task with its changes, checked by the rules for new ones."""
    if task.status is not Status.QUEUED:
        hint = "Only a task that has not started can be edited."
        raise Refused(f"{task.id} is {task.status}", hint, code="started")
    probe = {"id": task.id, "project": task.project, "template": "none", **values}
    moves = "project" in values
    if ("template" in empty or moves or "vars" in values) and "template" not in values:
        probe["template"] = None if "template" in empty else task.template
    if moves and "workspace" not in values and task.workspace is not None:
        probe["workspace"] = task.workspace
    if (moves or "artifacts" in values) and (values.get("artifacts") or task.artifacts):
        probe |= {"artifacts": values.get("artifacts", task.artifacts)}
        probe |= {"parent": task.parent} if task.parent else {}
    probe |= {"vars": values.get("vars", task.vars)}
    changed = {**empty, **values}
    whole = router.complete(probe | _runner(task, changed))
    if "artifacts_missing" in whole:
        changed["artifacts_missing"] = whole["artifacts_missing"]
    if {"agent", "pool", "command"} & changed.keys():
        changed |= {"agent": whole["agent"], "pool": whole["pool"]}
    if "artifacts" in empty:
        changed["artifacts_missing"] = ()
    if (changed.get("not_before") or 0) > now:
        changed["ready_since"] = None
    return replace(task, **changed)


def _runner(task: Task, changed: Mapping[str, Any]) -> dict[str, Any]:
    """What decides who runs a task after its changes, as a new task would give it."""
    command = changed.get("command", task.command)
    gone = "agent" in changed or bool(command) != bool(task.command)
    agent = changed.get("agent", None if gone else task.agent)
    same = "pool" not in changed and not gone
    pool = task.pool if same else changed.get("pool")
    given = {"command": command, "agent": agent, "pool": pool}
    return {name: value for name, value in given.items() if value}


def cancel(
    desk: Desk,
    ids: Sequence[str] = (),
    *,
    tree: bool = False,
    group: str | None = None,
    reason: str = "",
) -> dict[str, Any]:
    """Cancel tasks, with `tree` their descendants too, or a whole group.

    What is in flight is asked to stop, durably; it holds what it holds until its process is dead.
    """
    if not ids and group is None:
        raise Invalid("nothing to cancel was named", "Give ids, or a group.", code="usage")
    with desk.store.write() as tx:
        policy = desk.policy_for_reading(tx)  # a broken file must not keep work running
        journal = Journal(tx, policy, desk.now(), desk.actor)
        tasks = find(tx, ids)
        others: dict[str, Task] = {}
        if group is not None:
            others |= _of_groups(tx, group)
        if tree:
            others |= _descendants(tx, tasks)
        after = [
            journal.happen(task, Happening.CANCEL, detail=reason).task
            for name, task in (others | tasks).items()
            if name in tasks or not task.status.final
        ]
        for task in after:
            if task.paused:
                tx.drop_pause(f"task:{task.id}")
        journal.close()
    return {"schema": SCHEMA, "tasks": [_changed(task) for task in after]}


def retry(desk: Desk, ids: Sequence[str]) -> dict[str, Any]:
    """Put parked tasks back, and start those in backoff at once; counters are cleared."""
    if not ids:
        raise Invalid("nothing to retry was named", "Give ids.", code="usage")
    with desk.store.write() as tx:
        policy, now = desk.policy(), desk.now()  # as of the turn, not of the wait for it
        journal = Journal(tx, policy, now, desk.actor)
        after = [journal.happen(task, Happening.RETRY).task for task in find(tx, ids).values()]
        journal.close()
    return {"schema": SCHEMA, "tasks": [_changed(task) for task in after]}


def find(reading: Reading, ids: Iterable[str]) -> dict[str, Task]:
    """Known tasks, in the order in which they were named."""
    wanted = list(dict.fromkeys(ids))
    found = reading.tasks(wanted) if wanted else {}
    for name in wanted:
        if name not in found:
            hint = "`fairlane list` shows what there is."
            raise NotFound(f"there is no task {name!r}", hint, code="unknown_task")
    return {name: found[name] for name in wanted}


def _changed(task: Task) -> dict[str, Any]:
    told = {"id": task.id, "status": str(task.status), "reason": task.reason}
    return told | {"stop_requested": task.stop_requested}


def _of_groups(reading: Reading, group: str) -> dict[str, Task]:
    """The tasks of a group and of the groups under it."""
    found: dict[str, Task] = {}
    for name in lineage(reading, group):
        found |= {placed.task.id: placed.task for placed in every(reading, Filter(group=name))}
    return found


def _descendants(reading: Reading, tasks: Mapping[str, Task]) -> dict[str, Task]:
    """Children, their children, and so on."""
    found: dict[str, Task] = {}
    left = list(tasks)
    while left:
        for placed in every(reading, Filter(parent=left.pop())):
            if placed.task.id not in found:
                found[placed.task.id] = placed.task
                left.append(placed.task.id)
    return found
