"""Snapshot: everything that planning reads, as one immutable value."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane.model.errors import Invalid
from fairlane.model.instant import Instant
from fairlane.model.project import Group, History, Pause, Pool, Project, Usage, Worker
from fairlane.model.record import dataclass, field, replace
from fairlane.model.task import Entry, Lane, LaneKey, Lease, Status, Task, lane_of


@dataclass(frozen=True, slots=True)
class InFlight:
    """A task with a lease that has not ended."""

    task: str
    seq: int
    lane: LaneKey
    lease: Lease
    status: Status = Status.RUNNING
    workspace: str | None = None  # the one it works in, preferred or not
    max_attempts: int | None = None
    launch_failures: int = 0
    stop_requested: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued task with what it may wait for; policy and time tell whether it is ready."""

    lane: LaneKey
    entry: Entry
    needs: tuple[tuple[str, Status], ...] = ()  # those that are not done
    parent: tuple[str, Status] | None = None  # if it is not done
    artifacts: tuple[str, ...] = ()  # those that are missing
    backoff_until: Instant | None = None
    not_before: Instant | None = None
    source: str = ""
    paused: bool = False
    failed: str = ""  # what went wrong last


@dataclass(frozen=True, slots=True)
class WaitCount:
    """Waiting tasks that a store has counted by what they wait for first."""

    code: str
    count: int
    tasks: tuple[str, ...]  # the first few by `seq`
    until: Instant | None = None  # the earliest end


@dataclass(frozen=True, slots=True)
class StaleWorkspace:
    """A workspace that a host which is not seen any more may still use."""

    project: str
    name: str
    task: str  # whose attempt was lost there
    until: Instant


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What planning reads. `Snapshot.of` builds one from plain objects."""

    lanes: tuple[Lane, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    wait_counts: tuple[WaitCount, ...] = ()
    projects: dict[str, Project] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    workers: tuple[Worker, ...] = ()  # none that lives: one is assumed, `local`
    paused: tuple[Pause, ...] = ()
    usage: tuple[Usage, ...] = ()
    history: tuple[History, ...] = ()
    groups: dict[str, str | None] = field(default_factory=dict)  # group -> parent group
    clock: int = 0  # V, the clock for all
    batch_started: int = 0  # starts in the interval that began at `batch_since`
    batch_since: Instant | None = None
    agents: tuple[str, ...] | None = None  # None: every agent is known
    ended: dict[str, Status] = field(default_factory=dict)  # done, parked, canceled
    half_open_at: Instant | None = None  # a parked task is tried once more; None: none, or later
    assumed: Worker | None = None  # where none lives; None: one with as many slots as cap `all`
    stale: tuple[StaleWorkspace, ...] = ()  # workspaces that nobody may take yet

    @classmethod
    def of(
        cls,
        tasks: Iterable[Task],
        projects: Iterable[Project] = (),
        workers: Iterable[Worker] = (),
        pools: Iterable[Pool] = (),
        usage: Iterable[Usage] = (),
        paused: Iterable[Pause | str] = (),
        groups: Iterable[Group] = (),
        history: Iterable[History] = (),
    ) -> Snapshot:
        """Lanes from plain tasks; what is in flight are tasks with that status."""
        pauses = tuple(Pause(pause) if isinstance(pause, str) else pause for pause in paused)
        numbered = _paused(_numbered(tasks), pauses)
        statuses = {task.id: task.status for task in numbered}
        lanes: dict[LaneKey, list[Entry]] = {}
        waiting: list[Waiting] = []
        for task in numbered:
            if task.status is Status.QUEUED:
                waits = waits_of(task, statuses)
                if waits is None:
                    lanes.setdefault(task.lane, []).append(task.entry)
                else:
                    waiting.append(waits)
        flying = tuple(in_flight_of(task) for task in numbered if task.status.in_flight)
        known = {project.name: project for project in projects}
        for task in numbered:
            known.setdefault(task.project, Project(task.project))
        return cls(
            lanes=tuple(lane_of(key, entries) for key, entries in lanes.items()),
            in_flight=flying,
            waiting=tuple(waiting),
            projects={name: _standing(project, flying) for name, project in known.items()},
            pools={pool.name: pool for pool in pools},
            workers=tuple(workers),
            paused=pauses,
            usage=tuple(usage),
            history=tuple(history),
            groups={group.name: group.parent for group in groups},
            ended={
                task.id: task.status
                for task in numbered
                if task.status in (Status.DONE, Status.PARKED, Status.CANCELED)
            },
        )


def waits_of(task: Task, statuses: dict[str, Status]) -> Waiting | None:
    """What a queued task may wait for; None: nothing, whatever policy and time say."""
    for needed in (*task.needs, *([task.parent] if task.parent else [])):
        if needed not in statuses:
            raise Invalid(f"task {task.id} needs {needed}, which is not known", "Add it first.")
    needs = tuple((need, statuses[need]) for need in task.needs)
    needs = tuple(pair for pair in needs if pair[1] is not Status.DONE)
    parent = (task.parent, statuses[task.parent]) if task.parent else None
    if parent and parent[1] is Status.DONE:
        parent = None
    timers = task.backoff_until is not None or task.not_before is not None
    facts = (needs, parent, task.artifacts_missing, timers, task.source_hold, task.paused)
    if not any(facts):
        return None
    return Waiting(
        lane=task.lane,
        entry=task.entry,
        needs=needs,
        parent=parent,
        artifacts=task.artifacts_missing,
        backoff_until=task.backoff_until,
        not_before=task.not_before,
        source=task.source_hold,
        paused=task.paused,
        failed=task.reason,
    )


def in_flight_of(task: Task) -> InFlight:
    """A leased or running task as the planner sees it."""
    return InFlight(
        task=task.id,
        seq=task.seq,
        lane=task.lane,
        lease=task.lease or Lease(),
        status=task.status,
        workspace=task.workspace,
        max_attempts=task.max_attempts,
        launch_failures=task.launch_failures,
        stop_requested=task.stop_requested,
    )


def _numbered(tasks: Iterable[Task]) -> list[Task]:
    """Tasks with a `seq` each: their own, or their place in the list."""
    listed = list(tasks)
    ids: set[str] = set()
    for task in listed:
        if task.id in ids:
            raise Invalid(f"task {task.id} appears twice", "Give every task its own id.")
        ids.add(task.id)
    if any(task.seq == 0 for task in listed):
        listed = [replace(task, seq=number) for number, task in enumerate(listed, 1)]
    parents = {task.id: task.parent for task in listed}
    listed = [_with_depth(task, parents) if task.parent else task for task in listed]
    return sorted(listed, key=lambda task: task.seq)


def _paused(tasks: list[Task], pauses: tuple[Pause, ...]) -> list[Task]:
    """Tasks that a pause of their own keeps out of the lanes."""
    scopes = {pause.scope for pause in pauses if pause.scope.startswith("task:")}
    if not scopes:
        return tasks
    return [replace(t, paused=True) if f"task:{t.id}" in scopes else t for t in tasks]


def _with_depth(task: Task, parents: dict[str, str | None]) -> Task:
    """A child with the number of its ancestors, unless it was given."""
    if task.depth:
        return task
    ancestors: list[str] = []
    parent = task.parent
    while parent is not None:
        if parent in ancestors or parent == task.id:
            raise Invalid(f"task {task.id} is its own ancestor", "Take one parent out.")
        ancestors.append(parent)
        parent = parents.get(parent)
    return replace(task, depth=len(ancestors))


def _standing(project: Project, flying: tuple[InFlight, ...]) -> Project:
    """A plain project with what is in flight counted in."""
    used = sum(flight.lease.used for flight in flying if flight.lane.project == project.name)
    return replace(project, tokens=project.tokens + used) if used else project
