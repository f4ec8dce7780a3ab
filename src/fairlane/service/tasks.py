"""Tasks as operations: add, edit, list, show, cancel, retry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from fairlane.engine.context import Context, slots_of
from fairlane.engine.task_changes import TaskChanges, note_rules
from fairlane.intake import fields
from fairlane.intake.fields import Records
from fairlane.intake.queue_depth import measure, positions
from fairlane.intake.routing import DEFAULT_PROJECT, Router
from fairlane.intake.submit import Batch, collector_paused, submit
from fairlane.model.errors import Invalid, Refused, did_you_mean
from fairlane.model.event import Event, Happening
from fairlane.model.instant import Instant
from fairlane.model.names import SCHEMA
from fairlane.model.project import Group, Pause, Project
from fairlane.model.record import replace
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.attempt_named import unknown_task
from fairlane.store.base import Filter, Reading, Writing

if TYPE_CHECKING:
    from fairlane.intake.fields import TaskValues
    from fairlane.model.documents.tasks import (
        AddedAnswer,
        AddedDocument,
        ChangedAnswer,
        ChangedDocument,
        TasksAnswer,
    )
    from fairlane.model.values import Values
    from fairlane.service.attempt_rights import Children

#: Fields that are what a task is; another one is another task.
FIXED = ("id", "parent", "needs")


class RollBack(Exception):
    """Ends a transaction that must leave no trace; `suppress` it around the transaction."""


def add(
    context: Context,
    tasks: Records | Iterable[Mapping[str, object]],
    *,
    defaults: Mapping[str, object] | None = None,
    group: str | None = None,
    again: bool = False,
    force: bool = False,
    chain: bool = False,
    recipe: str | None = None,
    dry_run: bool = False,
) -> AddedAnswer:
    """Add tasks, all or none; with a recipe a chain of them out of one.

    Ids that are known are returned as they are. `defaults` are fields for records that do not give
    them; `chain`: each needs the one before; `again` puts back what is done or canceled; `force`
    lets an id have another project's prefix.
    """
    fill = dict(defaults or {}) | ({"group": group} if group is not None else {})
    if recipe is not None:
        from fairlane.service.groups import add_recipe

        return add_recipe(context, recipe, tasks, fill, again=again, force=force, dry_run=dry_run)
    records = tasks if isinstance(tasks, Records) else Records.of(list(tasks))
    with collector_paused(len(records.rows)), suppress(RollBack), context.store.write() as tx:
        intake = Intake(context, tx, force)
        document = intake.enter(intake.submit(records, fill, chain), again)
        conclude(document, dry_run)
    return document


def router_for(context: Context, reading: Reading, force: bool = False) -> Router:
    """Projects and groups as they are now; the project `default` always exists."""
    projects = {DEFAULT_PROJECT: Project(DEFAULT_PROJECT)} | reading.table(Project)
    return Router(projects, reading.table(Group), context.settings, context.home, force)


class Intake:
    """One turn in which tasks are added, within one transaction."""

    def __init__(self, context: Context, tx: Writing, force: bool = False) -> None:
        self.context, self.tx = context, tx
        self.policy: Policy = context.policy()  # as of the turn, not of the wait for it
        self.now: Instant = context.now()
        self.router: Router = router_for(context, tx, force)
        self.bounds: Children | None = None
        if context.lease is not None:
            from fairlane.service.attempt_rights import Children

            self.bounds = Children(tx, self.policy, self.router, context.lease)

    def submit(
        self,
        records: Records,
        fill: Mapping[str, object] | None = None,
        chain: bool = False,
        beside: Mapping[str, TaskValues] | None = None,
    ) -> Batch:
        """Valid tasks for all records; see `intake.submit`."""
        return submit(
            self.tx, self.router, self.policy, self.now, records, fill, chain, beside, self.bounds
        )

    def enter(
        self, batch: Batch, again: bool = False, origin: Mapping[str, object] | None = None
    ) -> AddedAnswer:
        """Write what came in, unless the queue is too deep for it. `origin`: for the event log."""
        warnings = self.write(batch, again, origin)
        if isinstance(warnings, str):
            return _deferred(warnings)
        return _added(self.tx, self.policy, self.now, batch, warnings)

    def write(
        self, batch: Batch, again: bool = False, origin: Mapping[str, object] | None = None
    ) -> dict[str, str] | str:
        """The same: warnings by task, or why the queue is too deep."""
        context, tx, policy, now = self.context, self.tx, self.policy, self.now
        ended = [name for name, status in batch.known.items() if again and status.final]
        returning = tx.tasks(ended) if ended else {}
        warnings = self.not_carried(batch) | self.unknown_agents(batch)
        pressure = measure(tx, policy, slots_of(context.settings, policy), now)
        new = (placed.task for placed in batch.new.values())
        entering = [*filter(_is_queued, new), *returning.values()]
        if pressure is not None and entering:
            for task in entering:
                warnings[task.id] = pressure.enter(task.kind) or warnings.get(task.id, "")
            too_deep = pressure.too_deep()
            if too_deep:
                return too_deep
        for made in self.router.new_groups:
            tx.put(made)
        if batch.new:
            tx.insert(list(batch.new.values()))
            if any(placed.task.needs or placed.task.parent for placed in batch.new.values()):
                note_rules(tx, policy)
            by = {"by": context.actor, **(origin or {})}
            tasks = [placed.task for placed in batch.new.values()]
            tx.log([Event(0, now, "added", task.id, task.project, by) for task in tasks])
        if returning:
            task_changes = TaskChanges(tx, policy, now, context.actor)
            for task in returning.values():
                batch.known[task.id] = task_changes.happen(task, Happening.AGAIN).task.status
            task_changes.close()
        return warnings

    def not_carried(self, batch: Batch) -> dict[str, str]:
        """A word for each new task that cannot start from the work of all that it needs."""
        tasks = [placed.task for placed in batch.new.values()]
        projects = {task.project: self.router.project(task.project) for task in tasks}
        if not any(task.needs or task.parent for task in tasks):
            return {}
        from fairlane.engine import earlier_work

        return earlier_work.warnings(self.tx, tasks, self.tx.table(Project) | projects)

    def unknown_agents(self, batch: Batch) -> dict[str, str]:
        """A word for each new task whose agent is not in the settings: it would be held."""
        known = self.context.settings.known_agents()
        asked = {placed.task.agent for placed in batch.new.values() if placed.task.agent}
        words = {
            agent: f"agent {agent} is not known here. {did_you_mean(agent, known)}"
            for agent in asked.difference(known)
        }
        return {
            name: words[placed.task.agent]
            for name, placed in batch.new.items()
            if placed.task.agent in words
        }


def note(context: Context, tx: Writing, kind: str, **data: object) -> None:
    """One event of no task, in the name of the caller."""
    changes = TaskChanges(tx, context.policy_for_reading(tx), context.now(), context.actor)
    changes.note(kind, None, **data)
    changes.close()


def conclude(document: AddedAnswer, dry_run: bool) -> None:
    """End the turn: a dry run and what is deferred leave no trace."""
    if dry_run:
        document["dry_run"] = True
    if dry_run or document["deferred"]:
        raise RollBack


def _deferred(why: str) -> AddedAnswer:
    """Nothing is stored; the caller may retry."""
    return {
        "schema": SCHEMA,
        "tasks": [],
        "deferred": True,
        "code": "deferred",
        "message": f"deferred: {why}",
        "hint": "Nothing was added: add fewer, come later, or raise backpressure.hard.",
    }


def _is_queued(task: Task) -> bool:
    """Not so where its source parked it."""
    return task.status is Status.QUEUED


def _added(
    tx: Writing, policy: Policy, now: Instant, batch: Batch, warnings: Mapping[str, str]
) -> AddedAnswer:
    new = (placed.task for placed in batch.new.values() if not placed.wait)
    ready = list(filter(_is_queued, new))
    places = positions(tx, policy, now, ready)
    rows: list[AddedDocument] = []
    fresh = set(batch.new)
    for name in batch.ids:
        row: AddedDocument = {
            "id": name,
            "created": name in fresh,
            "status": str(batch.known.get(name, Status.QUEUED)),
            "position": places.get(name),
        }
        fresh.discard(name)  # named a second time, it is known
        if warnings.get(name):
            row["warning"] = warnings[name]
        rows.append(row)
    return {"schema": SCHEMA, "tasks": rows, "deferred": False}


def edit(context: Context, ids: Sequence[str], changes: Mapping[str, object]) -> TasksAnswer:
    """Change tasks that have not started.

    Null puts a field back to its default.
    """
    for name in changes:
        if name in FIXED:
            hint = "Cancel the task, and add another one."
            raise Invalid(f"field {name!r} cannot be changed", hint)
    from fairlane.service.reports.listing import Holds, rows_of

    values = fields.read(changes)
    empty = fields.defaults(name for name, value in changes.items() if value is None)
    if not values and not empty:
        raise Invalid("there is nothing to change", "Give a field, such as --priority 10.")
    with context.store.write() as tx:
        policy, now = context.policy(), context.now()  # as of the turn, not of the wait for it
        task_changes = TaskChanges(tx, policy, now, context.actor)
        router = router_for(context, tx)
        after = [
            task_changes.settle(edited(router, task, values, empty, now))
            for task in find(tx, ids).values()
        ]
        for made in router.new_groups:
            tx.put(made)
        tx.save(after, content=True)
        for placed in after:
            task_changes.note("edited", placed.task, fields=sorted({*values, *empty}))
        task_changes.close()
        rows = rows_of(tx, after, Holds(context, tx).of(after))
    return {"schema": SCHEMA, "tasks": rows}


def edited(
    router: Router,
    task: Task,
    values: Mapping[str, object],
    empty: Mapping[str, object],
    now: Instant,
) -> Task:
    """The task with its changes, checked by the rules for new ones."""
    if task.status is not Status.QUEUED:
        hint = "Only a task that has not started can be edited."
        raise Refused(f"{task.id} is {task.status}", hint, code="started")
    probe: Values = {"id": task.id, "project": task.project, "template": "none", **values}
    moves = "project" in values
    if ("template" in empty or moves or "vars" in values) and "template" not in values:
        probe["template"] = None if "template" in empty else task.template
    if moves and "workspace" not in values and task.workspace is not None:
        probe["workspace"] = task.workspace
    if (moves or "artifacts" in values) and (values.get("artifacts") or task.artifacts):
        probe |= {"artifacts": values.get("artifacts", task.artifacts)}
        probe |= {"parent": task.parent} if task.parent else {}
    probe |= {"vars": values.get("vars", task.vars)}
    changed: Values = {**empty, **values}
    whole = router.complete(cast("TaskValues", probe | _runner(task, changed)), named=moves)
    if {"base", "merge", "project"} & changed.keys():
        branch = {"merge": task.merge, "base": task.base, **changed, "project": whole["project"]}
        router.check_branch(cast("TaskValues", branch))
    if "artifacts_missing" in whole:
        changed["artifacts_missing"] = whole["artifacts_missing"]
    if {"agent", "pool", "command"} & changed.keys():
        changed |= {"agent": whole["agent"], "pool": whole["pool"]}
    if "artifacts" in empty:
        changed["artifacts_missing"] = ()
    if (changed.get("not_before") or 0) > now:
        changed["ready_since"] = None
    return replace(task, **changed)


def _runner(task: Task, changed: Values) -> Values:
    """What decides who runs a task after its changes, as a new task would give it."""
    command = changed.get("command", task.command)
    gone = "agent" in changed or bool(command) != bool(task.command)
    agent = changed.get("agent", None if gone else task.agent)
    same = "pool" not in changed and not gone
    pool = task.pool if same else changed.get("pool")
    values = {"command": command, "agent": agent, "pool": pool}
    return {name: value for name, value in values.items() if value}


def cancel(
    context: Context,
    ids: Sequence[str] = (),
    *,
    tree: bool = False,
    group: str | None = None,
    reason: str = "",
) -> ChangedAnswer:
    """Take tasks out for good; what runs is stopped.

    With `tree` their descendants too, or a whole group.

    What is in flight is asked to stop, durably; it holds what it holds until its process is dead.
    """
    if not ids and group is None:
        raise Invalid("nothing to cancel was named", "Give ids, or a group.", code="usage")
    with context.store.write() as tx:
        policy = context.policy_for_reading(tx)  # a broken file must not keep work running
        task_changes = TaskChanges(tx, policy, context.now(), context.actor)
        tasks = find(tx, ids)
        others: dict[str, Task] = {}
        if group is not None:
            others |= _of_groups(tx, group)
        if tree:
            others |= _descendants(tx, tasks)
        after = [
            task_changes.happen(task, Happening.CANCEL, detail=reason).task
            for name, task in (others | tasks).items()
            if name in tasks or not task.status.final
        ]
        for task in after:
            if task.paused:
                tx.drop(Pause, f"task:{task.id}")
        task_changes.close()
    return {"schema": SCHEMA, "tasks": [_changed(task) for task in after]}


def retry(context: Context, ids: Sequence[str]) -> ChangedAnswer:
    """Put parked or waiting tasks back, counters cleared."""
    if not ids:
        raise Invalid("nothing to retry was named", "Give ids.", code="usage")
    with context.store.write() as tx:
        policy, now = context.policy(), context.now()  # as of the turn, not of the wait for it
        task_changes = TaskChanges(tx, policy, now, context.actor)
        after = [task_changes.happen(task, Happening.RETRY).task for task in find(tx, ids).values()]
        task_changes.close()
    return {"schema": SCHEMA, "tasks": [_changed(task) for task in after]}


def find(reading: Reading, ids: Iterable[str]) -> dict[str, Task]:
    """Known tasks, in the order in which they were named."""
    wanted = list(dict.fromkeys(ids))
    known = reading.tasks(wanted) if wanted else {}
    for name in wanted:
        if name not in known:
            raise unknown_task(name)
    return {name: known[name] for name in wanted}


def _changed(task: Task) -> ChangedDocument:
    return {
        "id": task.id,
        "status": str(task.status),
        "reason": task.reason,
        "stop_requested": task.stop_requested,
    }


def _of_groups(reading: Reading, group: str) -> dict[str, Task]:
    """The tasks of a group and of the groups under it."""
    from fairlane.service.reports.listing import every, lineage

    rows = (every(reading, Filter(group=name)) for name in lineage(reading, group))
    return {placed.task.id: placed.task for each in rows for placed in each}


def _descendants(reading: Reading, tasks: Mapping[str, Task]) -> dict[str, Task]:
    """Children, their children, and so on."""
    from fairlane.service.reports.listing import every

    below: dict[str, Task] = {}
    left = list(tasks)
    while left:
        for placed in every(reading, Filter(parent=left.pop())):
            if placed.task.id not in below:
                below[placed.task.id] = placed.task
                left.append(placed.task.id)
    return below
