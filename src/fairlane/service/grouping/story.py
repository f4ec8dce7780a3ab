"""A group's story: what runs, what starts next, what holds the rest, what it has cost so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairlane.lifecycle.usage import Tokens, counted
from fairlane.model.plan import Hold
from fairlane.model.task import Status, Task
from fairlane.planner.readiness import GATE, SENTENCES
from fairlane.service.reports.documents import dollars, shown, title_of
from fairlane.service.reports.holds import Holds
from fairlane.store.base import Placed, Reading

#: How many tasks are named where many are the same.
NAMED = 10
_IN_FLIGHT = (Status.LEASED, Status.RUNNING)


def told(reading: Reading, holds: Holds, name: str, placed: Sequence[Placed]) -> dict[str, Any]:
    """What is known of a group's tasks, those of groups under it included."""
    queued = [each for each in placed if each.task.status is Status.QUEUED]
    held = holds.of(queued)
    used = reading.usage(f"group:{name}", None)
    return {
        "running": [_running(reading, each.task) for each in placed if _in_flight(each.task)],
        "next": [each.task.id for each in queued if held[each.task.id] is None],
        "holds": _by_code(queued, held),
        "parked": [
            {"id": each.task.id, "group": each.task.group, "reason": each.task.reason}
            for each in placed
            if each.task.status is Status.PARKED
        ],
        "span": _span(each.task for each in placed),
        "tokens": sum(counted(Tokens(*row.tokens), holds.policy.usage.count) for row in used),
        "usd": dollars(sum(row.usd for row in used)),
    }


def _in_flight(task: Task) -> bool:
    return task.status in _IN_FLIGHT


def _running(reading: Reading, task: Task) -> dict[str, Any]:
    attempt = reading.attempt(task.lease.id) if task.lease else None
    return {
        "id": task.id,
        "group": task.group,
        "title": title_of(task),
        "status": str(task.status),
        "worker": task.lease.worker if task.lease else None,
        "attempt": task.attempts,
        "since": shown(attempt.leased_at if attempt else None),
        "note": attempt.note if attempt else "",
    }


def _by_code(queued: Iterable[Placed], held: dict[str, Hold | None]) -> list[dict[str, Any]]:
    """What does not start now, by what holds it; the sentence that fits all of a sort."""
    sorts: dict[tuple[str, str], dict[str, Any]] = {}
    for each in queued:
        hold = held[each.task.id]
        if hold is None:
            continue
        reason = SENTENCES[hold.code] if hold.gate == GATE else hold.reason
        row = sorts.setdefault(
            (hold.code, reason),
            {"gate": hold.gate, "code": hold.code, "reason": reason, "count": 0, "tasks": []},
        )
        row["count"] += 1
        if len(row["tasks"]) < NAMED:
            row["tasks"].append(each.task.id)
    return sorted(sorts.values(), key=lambda row: -row["count"])


def _span(tasks: Iterable[Task]) -> dict[str, str | None]:
    """From the first that was added to the last that ended; open while something is unfinished."""
    found = list(tasks)
    ends = [task.ended_at for task in found if task.status.final and task.ended_at is not None]
    over = bool(found) and all(task.status.final for task in found)
    return {
        "from": shown(min((task.created_at for task in found), default=None)),
        "until": shown(max(ends, default=None)) if over else None,
    }
