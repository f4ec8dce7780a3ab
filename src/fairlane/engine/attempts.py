"""The one life of an attempt: lease, start, renew, progress, finish; each for one or many."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from fairlane.engine import checks
from fairlane.engine.context import Context, is_here, slots_of
from fairlane.engine.end_attempt import (
    Ending,
    end_attempt,
    ended_error,
    may_still_succeed,
    pause_pool,
    succeed_late,
    unreadable,
)
from fairlane.engine.lease_document import lease_documents, read_leases
from fairlane.engine.liveness import gather, host_seen
from fairlane.engine.look.workers import Asker
from fairlane.engine.round import commit_these, committed_round
from fairlane.engine.task_changes import TaskChanges
from fairlane.engine.turn import Renewed, Turn, holds
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.errors import FairlaneError, is_environmental
from fairlane.model.event import Happening
from fairlane.model.plan import Decided
from fairlane.model.project import Group, Pause, Project, WorkerRow
from fairlane.model.record import changed, dataclass
from fairlane.model.task import Attempt, Outcome, Status, Task
from fairlane.planner.gates.paused import sentence
from fairlane.planner.rules import pause_of, pauses_by_scope
from fairlane.settings import host_name
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
    """What one round leased, and the plan that it followed, in short."""

    documents: list[LocalLeaseDocument]
    decided: Decided


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
    claimed: bool = False  # its checks run when its process has ended
    refused: FairlaneError | None = None  # its lease had ended: only its usage was booked

    @property
    def taken_in(self) -> bool:
        """Whether it ended the attempt, or turned its loss into a success."""
        return not (self.repeated or self.claimed) and self.refused is None

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
        with context.store.write() as tx:
            policy = context.policy()  # as of the turn, not of the wait for it
            committed = commit_these(context, tx, policy, asker, only)
            leases = read_leases(tx, committed.started)
        return Leases(lease_documents(context, policy, leases), committed.decided)
    begun = context.clock.monotonic()
    with committed_round(context, asker) as (tx, planned, committed):
        leases = read_leases(tx, committed.started)
        if leases and asker.executor != "none":
            tx.put_value("cycle_seconds", round(context.clock.monotonic() - begun, 6))
    return Leases(lease_documents(context, planned.policy, leases), committed.decided)


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

    def may_share(row: Attempt) -> bool:  # without a repository each task has its own folder
        return row.executor != "none" and projects[row.project].repo is not None

    takers: dict[Path, Attempt] = {}  # two attempts never share a folder: the older lease has it
    for row in sorted(filter(may_share, rows.values()), key=lambda row: row.fence):
        takers.setdefault(folder(row), row)

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
        if may_share(row) and (taker := takers[folder(row)]) is not row:
            return Blocked("taken", f"{folder(row)} is taken by {taker.task}")
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
        turn = Turn(context, tx, started)
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
        turn = Turn(context, tx, leases)
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
        turn = Turn(context, tx, reported)
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
        turn = Turn(context, tx, endings)
        finished = {
            lease: _end(turn, attempt, endings[lease]) for lease, attempt in turn.attempts.items()
        }
        stopped = turn.close()
    for lease, end in finished.items() if stopped else ():
        finished[lease] = changed(end, task=stopped.get(end.task.id, end.task))
    return finished


def _end(turn: Turn, attempt: Attempt, ending: Ending) -> Finished:
    task, success = turn.task_of(attempt), ending.happening is Happening.SUCCEEDED
    open_ = attempt.ended_at is None and holds(task, attempt)
    late = not open_ and success and may_still_succeed(task, attempt)
    if open_ or late:
        attempt = changed(
            attempt,
            session=ending.session or attempt.session,
            work=ending.work if ending.work is not None else attempt.work,
        )
        if success and attempt.checks:
            attempt, ending = checks.judged(attempt, ending, turn.by_attempt)
            if checks.outstanding(attempt) and ending.happening is Happening.SUCCEEDED:
                return _unchecked(turn, attempt, ending)
            if open_ or ending.happening is Happening.SUCCEEDED:
                checks.log_passed(turn, turn.attempts[attempt.lease], attempt.checks)
    report = ending.report
    if open_:
        resumes = bool(attempt.checks) and checks.resumes(turn.settings, task, attempt)
        after = end_attempt(
            turn.changes, turn.books, task, attempt, ending.happening, report,
            park=ending.park, resumes=resumes, check=checks.failed_name(attempt),
        )  # fmt: skip
        if ending.pause and task.pool is not None:
            pause_pool(turn.changes, task.pool, ending.pause)
        _log_merge(turn, after, attempt)
        return Finished(turn.keep(after))
    if late and ending.happening is Happening.SUCCEEDED:
        after = succeed_late(turn.changes, turn.books, task, attempt, report)
        return Finished(turn.keep(after), late=True)
    turn.books.use(attempt, task, report.tokens, report.usd, ended=True)
    if success and attempt.outcome == Outcome.SUCCEEDED:
        return Finished(task, repeated=True)
    return Finished(task, refused=ended_error(attempt))


#: State of a merge -> the event that tells of it.
_MERGES = {
    "merged": "merged", "offered": "offered", "conflict": "merge_conflict",
    "failed": "merge_failed",
}  # fmt: skip


def _log_merge(turn: Turn, task: Task, attempt: Attempt) -> None:
    """Log what became of the work of an attempt that has just ended."""
    merge = (attempt.work or {}).get("merge")
    if isinstance(merge, Mapping) and (kind := _MERGES.get(merge["state"])):
        data = {name: merge[name] for name in ("commit", "url", "files", "detail") if merge[name]}
        turn.changes.note(kind, task, attempt=attempt.number, **data)


def _unchecked(turn: Turn, attempt: Attempt, ending: Ending) -> Finished:
    """A success whose checks have not passed: of the attempt itself a claim, else refused."""
    task = turn.task_of(attempt)
    if not ending.claim or attempt.executor == "none" or attempt.ended_at is not None:
        return Finished(task, refused=checks.missing(attempt))
    report = ending.report
    booked = turn.books.use(attempt, task, report.tokens, report.usd, ended=False)
    result = report.result if report.result is not None else attempt.result
    turn.start(changed(booked, result=result))
    return Finished(turn.task_of(attempt), claimed=True)


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
        turn = Turn(context, tx, [attempt.lease for attempt in lost])
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
