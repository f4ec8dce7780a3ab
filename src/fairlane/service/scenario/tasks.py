"""The tasks of a scenario, and what cannot be true of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.project import Project
from fairlane.model.record import replace
from fairlane.model.task import POOLS, Lease, Status, Task
from fairlane.model.values import COUNT_MAX, flag
from fairlane.service.scenario.world import Table, World, moment, nearest, tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairlane.model.instant import Instant
    from fairlane.policy.policy import Policy

#: Only what has a lease has these.
IN_FLIGHT_KEYS = ("lease_expires", "worker", "tokens_used", "process")
TASK_KEYS = (
    "id", "project", "kind", "title", "age", "created", "depth", "failures", "launch_failures",
    "priority", "status", "parent", "needs", "artifacts_missing", "group", "parallel", "locks",
    "workspace", "pool", "agent", "labels", "estimate_tokens", "max_attempts", "backoff_until",
    "not_before", "source", *IN_FLIGHT_KEYS,
)  # fmt: skip


def read_tasks(top: Table, world: World, policy: Policy, now: Instant) -> list[Task]:
    """Every task, checked by itself and against the others."""
    rows = tables(top, "task", TASK_KEYS, label="id")
    paused = _paused(top, world, {table.title for table in rows})
    read = {}
    for table in rows:
        task = _task(table, world, policy, now, paused)
        _check_place(table, task, world)
        read[task.id] = task
    for table in rows:
        _check_edges(table, read)
    depths = _depths(rows, read)
    _check_held(rows, read)
    return placed([_at_depth(task, depths[task.id]) for task in read.values()], world)


def _at_depth(task: Task, depth: int) -> Task:
    return task if task.depth == depth else replace(task, depth=depth)


def _paused(top: Table, world: World, ids: set[str]) -> set[str]:
    """The tasks that are paused by themselves."""
    named = {pause.scope[5:] for pause in world.pauses if pause.scope.startswith("task:")}
    for task_id in sorted(named - ids):
        raise top.error("paused", f"there is no task {task_id!r}", nearest(task_id, ids))
    return named


def _task(table: Table, world: World, policy: Policy, now: Instant, paused: set[str]) -> Task:
    task_id = table.title
    status = Status(table.choice("status", map(str, Status)) or "queued")
    project = _project_of(table, task_id, world.projects)
    agent = table.word("agent") or project.agent
    pool = table.word("pool") or POOLS.get(agent or "")
    created, ready_since = _times(table, now)
    priority = table.whole("priority", least=-COUNT_MAX)
    failures = table.whole("failures") or 0
    return Task(
        id=task_id,
        seq=table.number,
        project=project.name,
        kind=table.word("kind") or "code",
        title=table.text("title") or "",
        agent=agent,
        priority=100 if priority is None else priority,
        parent=table.name("parent"),
        needs=table.names("needs") or (),
        group=table.name("group"),
        parallel=table.read("parallel", flag),
        locks=table.words("locks") or (),
        workspace=table.name("workspace"),
        pool=pool,
        labels=table.words("labels") or (),
        estimate_tokens=table.whole("estimate_tokens"),
        max_attempts=table.whole("max_attempts", least=1),
        not_before=table.moment("not_before"),
        created_at=created,
        ready_since=ready_since,
        status=status,
        depth=table.whole("depth") or 0,
        failures=failures,
        attempts=failures + status.in_flight,
        launch_failures=table.whole("launch_failures") or 0,
        backoff_until=_backoff(table, status),
        artifacts_missing=table.words("artifacts_missing") or (),
        source_hold=table.text("source") or "",
        paused=task_id in paused,
        lease=_lease(table, status, world, policy, ready_since or created, failures),
    )


def _project_of(table: Table, task_id: str, projects: Mapping[str, Project]) -> Project:
    """The project it names, else the one to whose prefix its id belongs, else `default`."""
    owners = [
        other for other in projects.values() if other.prefix and task_id.startswith(other.prefix)
    ]
    owner = max(owners, key=lambda other: len(other.prefix or ""), default=None)
    name = table.name("project") or (owner.name if owner else "default")
    if owner and name != owner.name:
        raise table.error(
            "project",
            f"ids that begin with {owner.prefix!r} belong to project {owner.name!r}, not {name!r}",
            "Change the id, the project or the prefix.",
        )
    return projects.get(name) or Project(name)


def _times(table: Table, now: Instant) -> tuple[Instant, Instant | None]:
    """When it was created, and since when it is ready; `created` is an age or a time."""
    age = table.length("age")
    ready_since = None if age is None else now - age
    created = table.values.get("created")
    if created is None:
        return (now if ready_since is None else ready_since), ready_since
    if isinstance(created, str) and "-" not in created[1:]:
        return now - (table.length("created") or 0), ready_since
    return table.typed("created", created, moment), ready_since


def _backoff(table: Table, status: Status) -> Instant | None:
    until = table.moment("backoff_until")
    if until is not None and status is not Status.QUEUED:
        raise table.error(
            "backoff_until",
            f"a {status} task is not in backoff",
            "Only a queued task waits; take the key out or make it queued.",
        )
    return until


def _lease(
    table: Table, status: Status, world: World, policy: Policy, since: Instant, failures: int
) -> Lease | None:
    """The lease of a leased or running task; other tasks must not have its keys."""
    if not status.in_flight:
        for key in IN_FLIGHT_KEYS:
            if key in table:
                hint = 'Only a task with status = "leased" or "running" has it.'
                raise table.error(key, f"a {status} task has no lease", hint)
        return None
    estimate = table.whole("estimate_tokens")
    return Lease(
        id=f"lease-{table.title}",
        attempt=failures + 1,
        worker=_worker(table, world),
        expires_at=table.moment("lease_expires"),
        started_at=since,
        alive=table.choice("process", ("alive", "unknown")) == "alive",
        estimate=policy.share.default_estimate if estimate is None else estimate,
        used=table.whole("tokens_used") or 0,
    )


def _worker(table: Table, world: World) -> str | None:
    """Its worker; where workers are declared, one of them."""
    worker = table.name("worker")
    names = [declared.name for declared in world.workers]
    if worker is not None and names and worker not in names:
        raise table.error("worker", f"there is no worker {worker!r}", did_you_mean(worker, names))
    return worker


def _check_place(table: Table, task: Task, world: World) -> None:
    """A preferred workspace is one that its project has."""
    project = world.projects.get(task.project)
    declared = project.workspaces if project else None
    if task.workspace is not None and declared is not None and task.workspace not in declared:
        raise table.error(
            "workspace",
            f"project {task.project!r} has no workspace {task.workspace!r}",
            did_you_mean(task.workspace, declared) or "It declares none.",
        )


def _check_edges(table: Table, read: Mapping[str, Task]) -> None:
    """What it waits for exists."""
    task = read[table.title]
    for key, named in (("needs", task.needs), ("parent", (task.parent,) if task.parent else ())):
        for upstream in named:
            if upstream not in read:
                raise table.error(key, f"there is no task {upstream!r}", nearest(upstream, read))


def _depths(rows: Iterable[Table], read: Mapping[str, Task]) -> dict[str, int]:
    """Depth as given, else one more than the parent's; on the way, no task waits for itself."""
    tables_by_id = {table.title: table for table in rows}
    order = _upstream_first(tables_by_id, read)
    depths: dict[str, int] = {}
    for task_id in order:
        parent = read[task_id].parent
        has_depth = "depth" in tables_by_id[task_id]
        depths[task_id] = read[task_id].depth if has_depth or parent is None else depths[parent] + 1
    return depths


def _upstream_first(tables_by_id: Mapping[str, Table], read: Mapping[str, Task]) -> list[str]:
    """The tasks with everything that each waits for before it."""
    done: dict[str, None] = {}
    for start in read:
        path: dict[str, None] = {}
        stack = [start]
        while stack:
            task_id = stack[-1]
            path[task_id] = None
            task = read[task_id]
            ahead = [name for name in (task.parent, *task.needs) if name and name not in done]
            if not ahead:
                done[stack.pop()] = None
                path.pop(task_id)
                continue
            if ahead[0] in path:
                raise _cycle(tables_by_id[task_id], list(path), ahead[0])
            stack.append(ahead[0])
    return list(done)


def _cycle(table: Table, path: list[str], closing: str) -> Invalid:
    steps = [*path[path.index(closing) :], closing]
    key = "parent" if table.values.get("parent") == closing else "needs"
    return table.error(key, f"a cycle: {' waits for '.join(steps)}", "Take one edge out.")


def _check_held(rows: Iterable[Table], read: Mapping[str, Task]) -> None:
    """A workspace and a lock have at most one holder in flight."""
    holders: dict[tuple[str, str, str], str] = {}
    for table in rows:
        task = read[table.title]
        if not task.status.in_flight:
            continue
        resources = [("locks", "", lock) for lock in task.locks]
        if task.workspace is not None:
            resources.append(("workspace", task.project, task.workspace))
        for name in resources:
            other = holders.setdefault(name, task.id)
            if other != task.id:
                hint = "At most one task in flight may hold it."
                raise table.error(name[0], f"{name[2]!r} is held by {other!r} already", hint)


def placed(tasks: Sequence[Task], world: World) -> list[Task]:
    """The tasks, those in flight each with a workspace and a worker where these are declared."""
    return _on_workers(_in_workspaces(list(tasks), world), world)


def _in_workspaces(tasks: list[Task], world: World) -> list[Task]:
    """The first workspace of its project that no other task in flight has."""
    taken = {(task.project, task.workspace) for task in tasks if task.status.in_flight}
    for at, task in enumerate(tasks):
        project = world.projects.get(task.project)
        if not task.status.in_flight or task.workspace is not None or project is None:
            continue
        free = [name for name in project.workspaces or () if (project.name, name) not in taken]
        if free:
            tasks[at] = replace(task, workspace=free[0])
            taken.add((project.name, free[0]))
    return tasks


def _on_workers(tasks: list[Task], world: World) -> list[Task]:
    """The first worker with its labels that has a free slot, else the first with its labels."""
    slots = dict.fromkeys((worker.name for worker in world.workers), 0)
    for task in tasks:
        if task.lease and task.lease.worker in slots:
            slots[task.lease.worker] += 1
    for at, task in enumerate(tasks):
        if task.lease is None or task.lease.worker is not None:
            continue
        fits = [host for host in world.workers if set(task.labels) <= set(host.labels)]
        free = [host for host in fits if host.slots is None or slots[host.name] < host.slots]
        for worker in (free or fits)[:1]:
            slots[worker.name] += 1
            tasks[at] = replace(task, lease=replace(task.lease, worker=worker.name))
    return tasks
