"""The one life of an attempt: lease, start, renew, progress, finish; each for one or many."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from fairlane.engine.context import Context, is_here, slots_of
from fairlane.engine.end_attempt import (
    Ending,
    end_attempt,
    ended_error,
    may_still_succeed,
    pause_pool,
    succeed_late,
    unknown_lease,
    unreadable,
)
from fairlane.engine.lease_document import lease_documents, read_leases
from fairlane.engine.liveness import gather, host_seen
from fairlane.engine.round import commit_these, committed_round
from fairlane.engine.snapshot import Asker
from fairlane.engine.task_changes import TaskChanges
from fairlane.engine.usage import Books, close_books
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.errors import FairlaneError, is_environmental
from fairlane.model.event import Happening
from fairlane.model.instant import Instant
from fairlane.model.plan import Plan
from fairlane.model.project import Group, Pause, Project, WorkerRow
from fairlane.model.record import changed, dataclass
from fairlane.model.task import Attempt, Outcome, Status, Task
from fairlane.planner.gates.paused import sentence
from fairlane.planner.rules import pause_of, pauses_by_scope
from fairlane.settings import host_name
from fairlane.store.base import Writing
from fairlane.workspaces.place import path_of


@dataclass(frozen=True, slots=True)
class Progress:
    """What a running attempt has reported; tokens and cost are totals so far."""

    tokens: tuple[int, int, int, int] | None = None
    usd: int | None = None
    session: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Leases:
    """What one round leased, and the plan that it followed."""

    documents: list[LocalLeaseDocument]
    plan: Plan


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


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a lease must not be launched now."""

    code: str  # ended, stopped, paused, taken
    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of the end of one attempt."""

    task: Task
    late: bool = False  # a success after its lease had expired
    repeated: bool = False  # this success was known already
    refused: FairlaneError | None = None  # its lease had ended: only its usage was booked

    @property
    def taken_in(self) -> bool:
        """Whether it ended the attempt, or turned its loss into a success."""
        return not self.repeated and self.refused is None

    @property
    def status(self) -> Status:
        """The task's status now."""
        return self.task.status


def lease(
    context: Context,
    asker: Asker,
    *,
    labels: Sequence[str] = (),
    limit: int | None = None,
    only: Sequence[str] | None = None,
) -> Leases:
    """One round: look, plan, commit. `only`: direct mode, these tasks, whatever the caps say."""
    asker = changed(
        asker,
        limit=asker.limit if limit is None else limit,
        labels=tuple(sorted(set(labels))),
        direct=only is not None,
    )
    if only is not None:
        policy = context.policy()
        with context.store.write() as tx:
            committed = commit_these(context, tx, policy, asker, only)
            leases = read_leases(tx, committed.started)
        return Leases(lease_documents(context, policy, leases), committed.plan)
    begun = context.clock.monotonic()
    with committed_round(context, asker) as (tx, planned, committed):
        leases = read_leases(tx, committed.started)
        if leases and asker.executor != "none":
            tx.put_value("cycle_seconds", round(context.clock.monotonic() - begun, 6))
    return Leases(lease_documents(context, planned.policy, leases), committed.plan)


def present(context: Context) -> None:
    """The worker of this machine lives; its slots and labels follow settings and policy."""
    rules = context.settings.worker
    with context.store.write() as tx:
        policy, now = context.policy_for_reading(tx), context.now()
        slots = slots_of(context.settings, policy)
        tx.put(WorkerRow(rules.name, host_name(), slots, rules.labels, now))
        host_seen(TaskChanges(tx, policy, now, context.actor))


def blocked(context: Context, leases: Iterable[str]) -> dict[str, Blocked]:
    """Of these leases, those that must not be launched now, and why."""
    with context.store.read() as reading:
        rows = {attempt.lease: attempt for attempt in reading.open_attempts()}
        projects = reading.table(Project)
        parents = {group.name: group.parent for group in reading.table(Group).values()}
        pauses = pauses_by_scope(projects.values(), reading.table(Pause).values())
        tasks = reading.tasks({row.task for row in rows.values()})

    def folder(row: Attempt) -> Path:
        project = projects[row.project]
        return path_of(context.home, context.settings, project, row.task, row.workspace)

    def reason(lease: str) -> Blocked | None:
        row = rows.get(lease)
        if row is None:
            return Blocked("ended", f"lease {lease} has ended")
        task = tasks[row.task]
        if task.stop_requested:
            return Blocked("stopped", task.stop_requested)
        pause = pause_of(task, parents, pauses)
        if pause is not None:
            return Blocked("paused", sentence(pause))
        if row.executor == "none":
            return None
        for other in rows.values():  # two attempts never share a folder: the older lease has it
            shares = other.fence < row.fence and other.executor != "none"
            if shares and folder(other) == folder(row):
                return Blocked("taken", f"{folder(other)} is taken by {other.task}")
        return None

    reasons = {lease: reason(lease) for lease in leases}
    return {lease: why for lease, why in reasons.items() if why is not None}


def stops(context: Context, leases: Iterable[str]) -> dict[str, str]:
    """Of these leases, those whose attempt must stop, and why."""
    asked = set(leases)
    with context.store.read() as reading:
        return {
            task.lease.id: task.stop_requested
            for task in reading.in_flight()
            if task.lease and task.stop_requested and task.lease.id in asked
        }


def start(context: Context, started: Mapping[str, str | None]) -> Renewed:
    """Processes run, or holders outside have begun: their tasks are running."""
    with context.store.write() as tx:
        turn = _Turn(context, tx, started)
        for lease, attempt in turn.open().items():
            handle = started[lease] or attempt.handle
            turn.start(changed(attempt, handle=handle))
        turn.close()
    return turn.renewed()


def renew(context: Context, leases: Iterable[str], waiting: Container[str] = ()) -> Renewed:
    """The leases of holders that live run on from now; the first renewal starts the task.

    `waiting`: those of them whose launch has not begun; they do not start.
    """
    with context.store.write() as tx:
        turn = _Turn(context, tx, leases)
        expires_at = turn.now + turn.policy.lease.ttl
        for lease, attempt in turn.open().items():
            renewed = changed(attempt, expires_at=expires_at)
            if lease in waiting:
                turn.books.keep(renewed)
            else:
                turn.start(renewed)
        turn.close()
    return turn.renewed(expires_at)


def progress(
    context: Context, reported: Mapping[str, Progress], *, announce: bool = False
) -> Renewed:
    """Book usage as it is reported, however late; budgets are watched.

    `announce`: notes are written to the event log.
    """
    with context.store.write() as tx:
        turn = _Turn(context, tx, reported)
        for lease, attempt in turn.attempts.items():
            news, ended = reported[lease], attempt.ended_at is not None
            task = turn.task_of(attempt)
            booked = turn.books.use(attempt, task, news.tokens, news.usd, ended=ended)
            if ended:
                continue
            note, session = news.note or attempt.note, news.session or attempt.session
            turn.start(changed(booked, note=note, session=session))
            if announce and news.note:
                turn.changes.note("progress", task, note=news.note)
        turn.close()
    return turn.renewed()


def finish(
    context: Context, endings: Mapping[str, Ending], *, strict: bool = False
) -> dict[str, Finished]:
    """Take in ends of attempts, late successes included; each is taken in once.

    An end that our code cannot take in is parked with its reason; the others are taken in.
    `strict`: nothing is taken in then, and the caller, who can correct it, gets the error.
    """
    try:
        return _finish(context, endings)
    except Exception as error:
        if strict or is_environmental(error):
            raise
    finished: dict[str, Finished] = {}
    problem: Exception | None = None
    for lease, ending in endings.items():
        try:
            finished |= _finish_alone(context, lease, ending)
        except Exception as error:  # the others are taken in before it is raised
            problem = error
    if problem is not None:
        raise problem
    return finished


def _finish_alone(context: Context, lease: str, ending: Ending) -> dict[str, Finished]:
    try:
        return _finish(context, {lease: ending})
    except Exception as error:
        if is_environmental(error):
            raise
        return _finish(context, {lease: unreadable(error)})


def _finish(context: Context, endings: Mapping[str, Ending]) -> dict[str, Finished]:
    with context.store.write() as tx:
        turn = _Turn(context, tx, endings)
        finished = {
            lease: _end(turn, attempt, endings[lease]) for lease, attempt in turn.attempts.items()
        }
        stopped = turn.close()
    for lease, end in finished.items() if stopped else ():
        finished[lease] = changed(end, task=stopped.get(end.task.id, end.task))
    return finished


def _end(turn: _Turn, attempt: Attempt, ending: Ending) -> Finished:
    task, report = turn.task_of(attempt), ending.report
    if attempt.ended_at is None and holds(task, attempt):
        if ending.session:
            attempt = changed(attempt, session=ending.session)
        after = end_attempt(
            turn.changes, turn.books, task, attempt, ending.happening, report, park=ending.park
        )
        if ending.pause and task.pool is not None:
            pause_pool(turn.changes, task.pool, ending.pause)
        return Finished(turn.keep(after))
    success = ending.happening is Happening.SUCCEEDED
    if success and may_still_succeed(task, attempt):
        after = succeed_late(turn.changes, turn.books, task, attempt, report)
        return Finished(turn.keep(after), late=True)
    turn.books.use(attempt, task, report.tokens, report.usd, ended=True)
    if success and attempt.outcome == Outcome.SUCCEEDED:
        return Finished(task, repeated=True)
    return Finished(task, refused=ended_error(attempt))


def reclaim(context: Context) -> list[Task]:
    """End every lease that has expired, unless its process lives or its result lies on disk."""
    with context.store.read() as reading:
        facts = gather(context, reading.open_attempts(), context.now())
    with context.store.write() as tx:
        now = context.now()
        lost = [
            attempt
            for attempt in tx.open_attempts()
            if attempt.expires_at <= now and not facts.alive(attempt, now)
        ]
        turn = _Turn(context, tx, [attempt.lease for attempt in lost])
        tasks = [_end(turn, attempt, Ending(Happening.LOST)).task for attempt in lost]
        turn.close()
    return tasks


def open_here(context: Context, known: Container[str] = ()) -> list[LocalLeaseDocument]:
    """Open attempts that this host runs, or did, without those that the caller knows."""
    with context.store.read() as reading:
        attempts = [
            attempt
            for attempt in reading.open_attempts()
            if is_here(attempt) and attempt.lease not in known
        ]
        tasks = reading.tasks([attempt.task for attempt in attempts])
        leases = read_leases(reading, [(tasks[attempt.task], attempt) for attempt in attempts])
        policy = context.policy_for_reading(reading)
    return lease_documents(context, policy, leases)


class _Turn:
    """One transaction over some leases: their rows, and what is written about them."""

    def __init__(self, context: Context, tx: Writing, leases: Iterable[str]) -> None:
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
