"""Calls: every operation as one function of plain values. All interfaces end here.

What a function needs is imported when it is called: a read on the command line pays for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlane.service.operations.values import (
    Document,
    Length,
    Used,
    When,
    ago,
    length,
    moment,
    told,
)

if TYPE_CHECKING:
    from fairlane.intake.records import Records
    from fairlane.service.desk import Desk


#: Most of a log that one answer holds.
LOG_BYTES_MAX = 256 * 1024


# Work comes in.


def add(
    desk: Desk,
    tasks: Records | Iterable[Mapping[str, Any]],
    *,
    defaults: Mapping[str, Any] | None = None,
    group: str | None = None,
    again: bool = False,
    force: bool = False,
    chain: bool = False,
    recipe: str | None = None,
    dry_run: bool = False,
) -> Document:
    """Add tasks, all or none; with a recipe a chain of them out of one."""
    if recipe is not None:
        from fairlane.service.grouping.recipes import add_recipe

        fill = {"group": group, **(defaults or {})}
        return add_recipe(desk, recipe, tasks, fill, again=again, force=force, dry_run=dry_run)
    from fairlane.service import tasks as queue

    return queue.add(
        desk, tasks, defaults=defaults, group=group, again=again, force=force, chain=chain,
        dry_run=dry_run,
    )  # fmt: skip


def edit(desk: Desk, ids: Sequence[str], changes: Mapping[str, Any]) -> Document:
    """Change tasks that have not started."""
    from fairlane.service import tasks

    return tasks.edit(desk, ids, changes)


def cancel(
    desk: Desk,
    ids: Sequence[str] = (),
    *,
    tree: bool = False,
    group: str | None = None,
    reason: str = "",
) -> Document:
    """Take tasks out for good; what runs is stopped."""
    from fairlane.service import tasks

    return tasks.cancel(desk, ids, tree=tree, group=group, reason=reason)


def retry(desk: Desk, ids: Sequence[str]) -> Document:
    """Put parked or waiting tasks back, counters cleared."""
    from fairlane.service import tasks

    return tasks.retry(desk, ids)


# What there is, and why.


def list_tasks(
    desk: Desk,
    *,
    project: str | None = None,
    kind: str | None = None,
    status: Sequence[str] = (),
    group: str | None = None,
    held_by: str | None = None,
    cursor: int = 0,
    limit: int | None = None,
) -> Document:
    """Tasks in the order in which they were added, each with what holds it."""
    from fairlane.service.reports import listing

    return listing.list_tasks(
        desk, project=project, kind=kind, status=status, group=group, held_by=held_by,
        after=cursor, limit=limit,
    )  # fmt: skip


def show(desk: Desk, task: str) -> Document:
    """One task whole: what it says, its attempts, its last events."""
    from fairlane.service.reports import listing

    return listing.show(desk, task)


def why(desk: Desk, task: str) -> Document:
    """Why a task does not start, and what would start it."""
    from fairlane.service import whys

    return whys.why(desk, task)


def logs(
    desk: Desk,
    task: str,
    *,
    attempt: int | None = None,
    stream: str = "stdout",
    offset: int | None = None,
    limit: int = LOG_BYTES_MAX,
) -> Document:
    """What an attempt printed, as text: from a place on, or the end of it."""
    from fairlane.service import logs as kept

    return kept.page(desk, task, attempt, stream, offset, min(limit, LOG_BYTES_MAX))


def events(
    desk: Desk, *, cursor: int | None = None, task: str | None = None, limit: int = 1000
) -> Document:
    """Events after a number, or the newest."""
    from fairlane.service.reports import events as log

    return log.page(desk, cursor, task, limit)


def status(desk: Desk) -> Document:
    """How things stand now."""
    from fairlane.service.reports import status as report

    return report.status(desk)


def plan(desk: Desk) -> Document:
    """What a cycle would start now; changes nothing."""
    from fairlane.service import rounds

    return rounds.plan(desk)


def summary(desk: Desk, *, since: When = None) -> Document:
    """What happened while nobody looked."""
    from fairlane.service.reports import summary as report

    return report.summary(desk, ago(desk, since))


def stats(desk: Desk, *, since: When = None) -> Document:
    """Shares against targets, waits, durations, tokens, cost."""
    from fairlane.service.reports import stats as report

    return report.stats(desk, ago(desk, since))


def decisions(desk: Desk, *, cursor: int = 0, limit: int = 100) -> Document:
    """Recorded plans in short."""
    from fairlane.service import decisions as record

    return record.listing(desk, cursor, limit)


def decision(desk: Desk, number: int) -> Document:
    """One recorded plan, whole."""
    from fairlane.service import decisions as record

    return record.show(desk, number)


def replay(desk: Desk, *, number: int | None = None, planner: str = "lanes") -> Document:
    """Plan again from the record; every difference is named."""
    from fairlane.service import decisions as record

    return record.replay(desk, number, planner)


# The queue.


def pause(desk: Desk, *, scope: str = "all", reason: str = "") -> Document:
    """Start nothing more: all, or a project, kind, pool, group, task."""
    from fairlane.service import queue

    return queue.pause(desk, scope, reason)


def resume(desk: Desk, *, scope: str = "all") -> Document:
    """Go on after a pause."""
    from fairlane.service import queue

    return queue.resume(desk, scope)


def clear(desk: Desk, *, scope: str = "all", dry_run: bool = False) -> Document:
    """Cancel what is queued in a scope."""
    from fairlane.service import queue

    return queue.clear(desk, scope, dry_run=dry_run)


# The pull protocol.


def lease(
    desk: Desk,
    *,
    limit: int | None = None,
    worker: str | None = None,
    labels: Sequence[str] = (),
    wait: Length = None,
) -> Document:
    """Take what may start now, at most `limit`; each is yours until it expires."""
    from fairlane.service import leases

    return leases.lease(desk, limit, worker, labels, length(wait) or 0)


def heartbeat(desk: Desk, lease: str) -> Document:
    """Keep a lease."""
    from fairlane.service import leases

    return leases.heartbeat(desk, lease)


def report(
    desk: Desk,
    lease: str,
    *,
    tokens: Used = None,
    cost: float | None = None,
    note: str = "",
    session: str | None = None,
) -> Document:
    """Tell progress, tokens and cost of what runs: totals so far."""
    from fairlane.service import leases

    return leases.report(desk, lease, told(tokens, cost), note, session)


def complete(
    desk: Desk,
    lease: str,
    *,
    tokens: Used = None,
    cost: float | None = None,
    result: dict[str, Any] | None = None,
) -> Document:
    """The work is done."""
    from fairlane.service import leases

    return leases.complete(desk, [lease], told(tokens, cost, result=result))


def release(
    desk: Desk,
    lease: str,
    *,
    outcome: str = "released",
    reason: str = "",
    tokens: Used = None,
    cost: float | None = None,
    retry_after: Length = None,
    resets_at: When = None,
) -> Document:
    """Give it back: untouched, failed, throttled."""
    from fairlane.service import leases

    report = told(tokens, cost, reason, None, length(retry_after), moment(resets_at))
    return leases.release(desk, lease, outcome, report)


def reclaim(desk: Desk) -> Document:
    """End the leases that have run out."""
    from fairlane.service import leases

    return leases.reclaim(desk)
