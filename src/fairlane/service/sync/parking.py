"""Items that their source has parked, and leases there that have expired."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.engine.task_changes import TaskChanges
from fairlane.intake.sources.base import Found, Item, Standing
from fairlane.lifecycle.backoff import attempts_max, wait_after
from fairlane.model.event import Happening
from fairlane.model.instant import Instant, show_instant
from fairlane.model.record import changed, replace
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.sync.mapping import Entry

EXPIRED = "its lease expired"


def with_expired(
    content: Found, policy: Policy, now: Instant, is_ours: Callable[[str], bool]
) -> Found:
    """The same; an item whose lease has expired is open again, with one failed attempt more.

    A lease of ours is renewed here, and its end in the source may be an old one.
    """
    if all(item.taken_until is None for item in content.items):
        return content
    items = (item if is_ours(item.id) else _as_of(item, policy, now) for item in content.items)
    return replace(content, items=tuple(items))


def _as_of(item: Item, policy: Policy, now: Instant) -> Item:
    """As if the lease had been reclaimed when it expired."""
    end, most = item.taken_until, attempts_max(None, policy)
    if item.standing is not Standing.TAKEN or end is None or end > now:
        return item
    failures = item.failures + 1
    reason = f"{EXPIRED} (attempt {failures} of {most})" if failures >= most else ""
    record = dict(item.record)
    if end and not reason:
        wait = wait_after(policy.retry, failures, item.id, failures)
        record["not_before"] = show_instant(end + wait)
    return replace(
        item, record=record, standing=Standing.OPEN, why="", failures=failures, parked=reason
    )


def follow(changes: TaskChanges, entry: Entry, item: Item, task: Task) -> bool:
    """Park or free a task as its source did since it was asked last; whether anything changed.

    What somebody retried here stays queued, though its source still calls it parked.
    """
    before, now = entry.get("parked", ""), item.parked
    if before == now:
        return False
    if now:
        entry["parked"] = now
    else:
        del entry["parked"]
    if now and task.status is Status.QUEUED:
        changes.park(task, now)
    elif task.status is Status.PARKED and task.reason == before:
        if now:
            changes.keep(changed(task, reason=now))
        else:
            changes.happen(task, Happening.RETRY)
    else:
        return False
    return True
