"""Bringing: projects, pauses and tasks with their past enter the store in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairlane.intake.records import Records
from fairlane.intake.routing import DEFAULT_PROJECT, Router
from fairlane.intake.submit import submit
from fairlane.lifecycle.usage import minute_of
from fairlane.model.event import Event
from fairlane.model.instant import Instant
from fairlane.model.project import Project
from fairlane.model.resources import Pause
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.booking import scopes_of
from fairlane.service.conversion.base import Brought, Converted, Paused
from fairlane.service.desk import Desk
from fairlane.service.journal import Journal
from fairlane.service.projects import place_project
from fairlane.settings import Settings
from fairlane.store.base import Booking, Placed, Writing


def bring(
    desk: Desk, tx: Writing, policy: Policy, settings: Settings, found: Converted, origin: str
) -> tuple[int, bool]:
    """Everything that is not there yet. How many tasks are new, and whether anything changed."""
    placed_any = [place_project(desk, tx, *each) for each in found.projects.items()]
    now = desk.now()
    journal = Journal(tx, policy, now, desk.actor)
    paused = _pause(journal, found.pauses)
    router = _router(desk, tx, settings)
    tasks = sorted(found.tasks, key=lambda each: each.created_at or now)  # the oldest first
    batch = submit(tx, router, policy, now, Records.of([each.record for each in tasks]))
    past = {str(each.record["id"]): each for each in tasks}
    new = [
        Placed(_with_past(placed.task, past[name], now), placed.wait, placed.due_at)
        for name, placed in batch.new.items()
    ]
    for made in router.new_groups:
        tx.put_group(made)
    tx.insert([placed if _queued(placed) else Placed(placed.task) for placed in new])
    tx.book([each for placed in new for each in _booked(tx, placed.task, past[placed.task.id])])
    told: dict[str, Any] = {"by": desk.actor, "from": origin}
    tx.log([Event(0, now, "added", each.task.id, each.task.project, told) for each in new])
    for placed in filter(_queued, new):
        journal.keep(placed.task)  # placed anew: what it needs may be over already
    journal.close()
    return len(new), bool(new or paused or any(placed_any))


def _router(desk: Desk, tx: Writing, settings: Settings) -> Router:
    """A project that was archived there still has its tasks."""
    known = {DEFAULT_PROJECT: Project(DEFAULT_PROJECT)} | tx.projects()
    projects = {name: replace(each, status="active") for name, each in known.items()}
    return Router(projects, tx.groups(), settings, desk.home)


def _queued(placed: Placed) -> bool:
    return placed.task.status is Status.QUEUED


def _with_past(task: Task, past: Brought, now: Instant) -> Task:
    """A new task with what has happened to it elsewhere."""
    created = min(past.created_at or now, now)
    ended = past.ended_at or now
    return replace(
        task,
        status=past.status,
        created_at=created,
        ready_since=created if task.ready_since is not None else None,
        failures=past.failures,
        attempts=past.failures + (past.status is Status.DONE),
        parked_at=now if past.status is Status.PARKED else None,
        ended_at=ended if past.status.final else None,
        reason=past.reason,
    )


def _booked(tx: Writing, task: Task, past: Brought) -> list[Booking]:
    """What it used counts where it was used, and a completion when it was done."""
    found = []
    for scope in scopes_of(tx, task):
        found += [Booking(scope, minute_of(at), (0, used, 0, 0)) for at, used in past.used]
        if task.status is Status.DONE and task.ended_at is not None:
            found.append(Booking(scope, minute_of(task.ended_at), starts=1, completions=1))
    return found


def _pause(journal: Journal, pauses: Sequence[Paused]) -> list[Paused]:
    held = {each.scope for each in journal.tx.pauses()}
    new = [each for each in pauses if each.scope not in held]
    for each in new:
        since = each.at or journal.now
        journal.tx.put_pause(Pause(each.scope, each.by or journal.actor, since, each.reason))
        journal.note("paused", scope=each.scope, reason=each.reason)
    return new
