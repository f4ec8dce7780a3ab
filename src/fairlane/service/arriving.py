"""Arriving: what a round would bring in before it plans, for those who only look."""

from __future__ import annotations

from dataclasses import replace

from fairlane.lifecycle.retry import half_open_at
from fairlane.lifecycle.step import step
from fairlane.model.event import Happening
from fairlane.model.instant import Instant
from fairlane.model.snapshot import Snapshot, WaitCount, Waiting, waits_of
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.artifacts import LOOKED_AT_MAX, folder_of, missing
from fairlane.service.desk import Desk
from fairlane.service.journal import ready_at
from fairlane.store.base import Filter, Placed, Reading

#: How many tasks are brought in at most, and how many timers are looked at beyond them.
ARRIVALS_MAX, TIMERS_SEEN = 10_000, 50
_FOREVER: Instant = 1 << 62


def with_arrivals(
    desk: Desk, reading: Reading, policy: Policy, now: Instant, snapshot: Snapshot
) -> Snapshot:
    """The snapshot after timers have passed and artifacts have appeared; nothing is written."""
    due = reading.due(now, ARRIVALS_MAX)
    appeared = _appeared(desk, reading)
    if not due and not appeared:
        return snapshot
    tasks = {placed.task.id: placed.task for placed in due} | appeared
    opened = [_opened(task, policy, now) for task in tasks.values()]
    ready = [
        task if task.ready_since is not None else ready_at(task, now)
        for task in opened
        if task.status is Status.QUEUED
    ]
    named = {name for task in ready for name in (*task.needs, task.parent or "") if name}
    statuses = reading.statuses(named) if named else {}
    waiting = tuple(waits_of(task, statuses) or Waiting(task.lane, task.entry) for task in ready)
    codes = {placed.task.id: placed.wait for placed in due} | dict.fromkeys(appeared, "artifact")
    later = reading.due(_FOREVER, len(due) + TIMERS_SEEN)[len(due) :]
    counts = _without(snapshot.wait_counts, codes, later)
    opens_at = next((placed.due_at for placed in later if not placed.wait), None)
    return replace(snapshot, waiting=waiting, wait_counts=counts, half_open_at=opens_at)


def _opened(task: Task, policy: Policy, now: Instant) -> Task:
    """A parked task whose half-open time has come is queued once more."""
    opens_at = half_open_at(task, policy) if task.status is Status.PARKED else None
    if opens_at is None or opens_at > now:
        return task
    return step(task, Happening.HALF_OPEN, policy, now).task


def _appeared(desk: Desk, reading: Reading) -> dict[str, Task]:
    found = {}
    for task, _, _ in reading.listing(Filter(wait="artifact"), limit=LOOKED_AT_MAX):
        still = missing(folder_of(desk, reading, task), task.artifacts)
        if still != task.artifacts_missing:
            found[task.id] = replace(task, artifacts_missing=still)
    return found


def _without(
    counts: tuple[WaitCount, ...], codes: dict[str, str], later: list[Placed]
) -> tuple[WaitCount, ...]:
    """The counts without the tasks that are told one by one."""
    found = []
    for each in counts:
        gone = sum(code == each.code for code in codes.values())
        until = next((placed.due_at for placed in later if placed.wait == each.code), None)
        left = tuple(name for name in each.tasks if name not in codes)
        if not gone:
            found.append(each)
        elif each.count > gone:
            found.append(WaitCount(each.code, each.count - gone, left, until))
    return tuple(found)
