"""Liveness: whether attempts run, have left a result, or belong to a host that nobody can reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlane.engine.context import Context, Facts, expired_here, is_here, run_folder, setup_folder
from fairlane.engine.task_changes import TaskChanges
from fairlane.model.errors import Invalid
from fairlane.model.instant import Instant
from fairlane.model.project import WorkerRow
from fairlane.model.record import changed
from fairlane.model.snapshot import StaleWorkspace
from fairlane.model.task import Attempt, Status, Task
from fairlane.policy.policy import Policy
from fairlane.settings import host_name
from fairlane.store.base import Reading

if TYPE_CHECKING:  # executors are imported when there is something to ask
    from fairlane.executors.base import State

#: The value in the store that has the workspaces of hosts that nobody can reach.
STALE = "stale_workspaces"


def state_of(context: Context, attempt: Attempt) -> State:
    """What the executor says about an attempt; of one that is not here it knows nothing."""
    from fairlane.executors.base import Gone, Handle, Running

    if not is_here(attempt):
        return Gone()
    try:
        executor = context.executor(attempt.executor)
        run = run_folder(context.home, attempt)
        if (before := setup_folder(run, attempt)) is not None:  # its agent has not begun
            return executor.poll(Handle(before))
        return executor.poll(Handle(run, attempt.handle or ""))
    except (Invalid, OSError):  # its package was removed, or cannot tell: unknown is not lost
        return Running()


def ended_here(context: Context) -> set[str]:
    """Leases of this host whose attempt has left its result, or whose known process is gone."""
    from fairlane.executors.base import Ended, Gone

    with context.store.read() as reading:
        attempts = [attempt for attempt in reading.open_attempts() if is_here(attempt)]
    states = [(attempt, state_of(context, attempt)) for attempt in attempts]
    return {
        attempt.lease
        for attempt, state in states
        if isinstance(state, Ended) or (attempt.handle is not None and state == Gone())
    }


def gather(context: Context, attempts: Iterable[Attempt], now: Instant) -> Facts:
    """Ask the executors about expired attempts of this host; outside of any write transaction.

    An attempt that has not shown itself by now is revoked: it starts nothing more.
    """
    expired = expired_here(attempts, now)
    for attempt in expired:
        if attempt.handle is None and not outlives_lease(context, attempt):
            context.executor(attempt.executor).revoke(run_folder(context.home, attempt))
    return observe(context, expired)


def observe(context: Context, attempts: Iterable[Attempt]) -> Facts:
    """Ask the executors about attempts of this host; changes nothing."""
    states = {row.lease: outlives_lease(context, row) for row in attempts if is_here(row)}
    present = frozenset(lease for lease, lives in states.items() if lives)
    return Facts(frozenset(states) - present, present)


def outlives_lease(context: Context, attempt: Attempt) -> bool:
    """Whether expiry does not end the attempt: it runs, or its result lies on disk."""
    from fairlane.executors.base import Gone

    return state_of(context, attempt) != Gone()


def is_unreachable(reading: Reading, attempt: Attempt, policy: Policy, now: Instant) -> bool:
    """Whether another host runs the attempt, and none of its workers was seen lately."""
    if attempt.executor == "none" or attempt.host in (None, host_name()):
        return False
    workers = reading.table(WorkerRow).values()
    return not any(
        row.host == attempt.host and now - row.seen_at < policy.lease.ttl for row in workers
    )


def keep_workspace(changes: TaskChanges, attempt: Attempt, task: Task) -> Task:
    """The attempt was lost: its host keeps the workspace, so its task is retried later."""
    tx, now = changes.tx, changes.now
    if not is_unreachable(tx, attempt, changes.policy, now):
        return task
    until = now + changes.policy.recovery.stale_after
    rows = [row for row in tx.value(STALE) or () if row["until"] > now]
    rows.append(
        {
            "host": attempt.host,
            "project": attempt.project,
            "workspace": attempt.workspace,
            "task": attempt.task,
            "until": until,
        }
    )
    tx.put_value(STALE, rows)
    if task.status is not Status.QUEUED or until <= (task.backoff_until or 0):
        return task
    later = changed(task, backoff_until=until)
    changes.keep(later)
    return later


def stale_workspaces(
    reading: Reading, attempts: Iterable[Attempt], policy: Policy, now: Instant
) -> tuple[StaleWorkspace, ...]:
    """Named workspaces that nobody may take yet: of attempts that are lost, or are lost now."""
    stale = [
        StaleWorkspace(row["project"], row["workspace"], row["task"], row["until"])
        for row in reading.value(STALE) or ()
        if row["workspace"] is not None and row["until"] > now
    ]
    until = now + policy.recovery.stale_after
    for attempt in attempts:
        expired = attempt.workspace is not None and attempt.expires_at <= now
        if expired and is_unreachable(reading, attempt, policy, now):
            stale.append(
                StaleWorkspace(attempt.project, attempt.workspace or "", attempt.task, until)
            )
    return tuple(stale)


def host_seen(changes: TaskChanges) -> None:
    """This host is here again: it stops what it lost, and its workspaces are free."""
    rows, here = changes.tx.value(STALE) or (), host_name()
    mine = {row["task"]: row["until"] for row in rows if row["host"] == here}
    if not mine:
        return
    changes.tx.put_value(STALE, [row for row in rows if row["host"] != here])
    for task in changes.tx.tasks(mine).values():
        if task.status is Status.QUEUED and task.backoff_until == mine[task.id]:
            changes.keep(changed(task, backoff_until=None))
    changes.close()
