"""Holding: what a worker that starts processes itself tells the store about its attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairlane.model.event import Happening
from fairlane.model.record import dataclass
from fairlane.model.resources import Pause
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service import budgets
from fairlane.service.alive import has_ended, is_alive, is_here
from fairlane.service.booking import Books
from fairlane.service.desk import Desk
from fairlane.service.ending import Report, end_attempt, may_still_succeed, succeed_late
from fairlane.service.journal import Journal
from fairlane.service.slots import slots_of
from fairlane.settings import host_name
from fairlane.store.base import Attempt, WorkerRow, Writing


@dataclass(frozen=True, slots=True)
class Progress:
    """What a running attempt has told since it was looked at last; totals so far."""

    tokens: tuple[int, int, int, int] | None = None
    usd: int | None = None
    session: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended, and what must be known beside the report."""

    happening: Happening
    report: Report
    session: str | None = None
    park: bool = False
    pause: str = ""  # the pool is paused with this reason


def present(desk: Desk, policy: Policy) -> None:
    """This worker lives: its slots and labels are as the settings and the policy say."""
    rules, slots = desk.settings.worker, slots_of(desk.settings, policy)
    row = WorkerRow(rules.name, host_name(), slots, rules.labels, desk.now())
    with desk.store.write() as tx:
        tx.put_worker(row)


def started(desk: Desk, policy: Policy, attempts: Iterable[Attempt]) -> None:
    """Processes run: their numbers are kept, their tasks are running."""
    now = desk.now()
    with desk.store.write() as tx:
        journal = Journal(tx, policy, now, desk.actor)
        for attempt in attempts:
            task, known = tx.task(attempt.task), tx.attempt(attempt.lease)
            if known is None or known.ended_at is not None:
                continue  # it was taken back meanwhile, and its runner revoked
            first = task is not None and task.status is Status.LEASED and _holds(task, attempt)
            if task is not None and first:
                journal.happen(task, Happening.STARTED)
            begun = attempt.started_at or (now if first else None)
            tx.put_attempts([replace(attempt, started_at=begun)])
        journal.close()


def renew(desk: Desk, policy: Policy, leases: Iterable[str]) -> set[str]:
    """Leases of processes that live run on from now; those that are no longer held are told."""
    now, lost = desk.now(), set()
    with desk.store.write() as tx:
        for lease in leases:
            attempt = tx.attempt(lease)
            if attempt is None or attempt.ended_at is not None:
                lost.add(lease)
            else:
                tx.put_attempts([replace(attempt, expires_at=now + policy.lease.ttl)])
    return lost


def progress(desk: Desk, policy: Policy, told: Mapping[str, Progress]) -> None:
    """Usage is booked as it is reported; budgets are looked at."""
    now = desk.now()
    with desk.store.write() as tx:
        journal, books = Journal(tx, policy, now, desk.actor), Books(tx, policy, now)
        for lease, news in told.items():
            attempt = tx.attempt(lease)
            task = tx.task(attempt.task) if attempt is not None else None
            if attempt is None or task is None:
                continue
            attempt = books.use(attempt, task, news.tokens, news.usd, ended=bool(attempt.ended_at))
            attempt = replace(
                attempt, session=news.session or attempt.session, note=news.note or attempt.note
            )
            books.keep(attempt)
        budgets.close(journal, books)


def finish(desk: Desk, policy: Policy, endings: Mapping[str, Ending]) -> dict[str, Task]:
    """Attempts have ended; an end that was taken in already is not taken in again."""
    now = desk.now()
    found: dict[str, Task] = {}
    with desk.store.write() as tx:
        journal, books = Journal(tx, policy, now, desk.actor), Books(tx, policy, now)
        for lease, ending in endings.items():
            attempt = tx.attempt(lease)
            task = tx.task(attempt.task) if attempt is not None else None
            if attempt is None or task is None:
                continue
            if attempt.ended_at is not None or not _holds(task, attempt):
                if ending.happening is Happening.SUCCEEDED and may_still_succeed(task, attempt):
                    found[lease] = succeed_late(journal, books, task, attempt, ending.report)
                else:
                    books.use(attempt, task, ending.report.tokens, ending.report.usd, ended=True)
                continue
            attempt = replace(attempt, session=ending.session or attempt.session)
            found[lease] = end_attempt(
                journal, books, task, attempt, ending.happening, ending.report, park=ending.park
            )
            if ending.pause and task.pool is not None:
                _pause_pool(tx, journal, task.pool, ending.pause)
        budgets.close(journal, books)
    return found


def _pause_pool(tx: Writing, journal: Journal, pool: str, reason: str) -> None:
    scope = f"pool:{pool}"
    if all(pause.scope != scope for pause in tx.pauses()):
        tx.put_pause(Pause(scope, journal.actor, journal.now, reason))
        journal.note("paused", None, scope=scope, reason=reason)


def _holds(task: Task, attempt: Attempt) -> bool:
    return task.lease is not None and task.lease.id == attempt.lease


def stops_wanted(desk: Desk, leases: Iterable[str]) -> dict[str, str]:
    """Of these leases, those whose stop is asked for, and why."""
    wanted = set(leases)
    with desk.store.read() as reading:
        return {
            task.lease.id: task.stop_requested
            for task in reading.in_flight()
            if task.lease and task.stop_requested and task.lease.id in wanted
        }


def mine(desk: Desk) -> list[tuple[Task, Attempt]]:
    """Open attempts whose process this host owns."""
    with desk.store.read() as reading:
        attempts = [attempt for attempt in reading.open_attempts() if is_here(attempt)]
        tasks = reading.tasks([attempt.task for attempt in attempts])
    return [(tasks[attempt.task], attempt) for attempt in attempts]


def gone(desk: Desk) -> list[tuple[Task, Attempt]]:
    """Of these, those that left how they ended, and those whose process is known and gone."""
    home = desk.home
    return [
        (task, attempt)
        for task, attempt in mine(desk)
        if has_ended(home, attempt) or (attempt.pid is not None and not is_alive(home, attempt))
    ]
