"""Tasks and attempts as every interface shows them; values of `env` are never shown."""

from __future__ import annotations

from typing import Any

from fairlane.model.event import Event
from fairlane.model.instant import Instant, show_duration, show_instant
from fairlane.model.plan import Hold
from fairlane.model.task import Status, Task
from fairlane.service.reports.holds import hold_document
from fairlane.store.base import Attempt, Placed

#: What is an instant in the data of an event.
_INSTANTS = frozenset({"expires_at", "until", "resets_at"})
COUNTERS = ("input", "output", "cache_read", "cache_write")


def shown(when: Instant | None) -> str | None:
    """An instant, if there is one."""
    return None if when is None else show_instant(when)


def dollars(micros: int | None) -> float | None:
    """Micro-dollars as dollars."""
    return None if micros is None else micros / 1_000_000


def counters(tokens: tuple[int, int, int, int]) -> dict[str, int]:
    """The four counters by name."""
    return dict(zip(COUNTERS, tokens, strict=True))


def row(placed: Placed, hold: Hold | None) -> dict[str, Any]:
    """A task as lists show it."""
    task = placed.task
    return {
        "id": task.id,
        "project": task.project,
        "kind": task.kind,
        "status": str(task.status),
        "priority": task.priority,
        "group": task.group,
        "attempts": task.attempts,
        "failures": task.failures,
        "ready": is_ready(placed, hold),
        "hold": hold_document(hold),
        "title": title_of(task),
        "agent": task.agent,
        "pool": task.pool,
        "parent": task.parent,
        "depth": task.depth,
        "created_at": show_instant(task.created_at),
        "ready_since": shown(task.ready_since),
        "ended_at": shown(task.ended_at),
        "reason": task.reason,
        "stop_requested": task.stop_requested,
    }


def title_of(task: Task) -> str:
    """What a person reads: its title, else the first line of its prompt, else its command."""
    said = (line.strip() for line in task.prompt.splitlines())
    return task.title or next(filter(None, said), "") or " ".join(task.command)


def is_ready(placed: Placed, hold: Hold | None) -> bool:
    """Whether a queued task waits for nothing of its own."""
    if placed.task.status is not Status.QUEUED:
        return False
    return not placed.wait or hold is None or hold.gate != "readiness"


def whole(placed: Placed, hold: Hold | None) -> dict[str, Any]:
    """Everything that a task says and what has happened to it."""
    task = placed.task
    return row(placed, hold) | {
        "seq": task.seq,
        "prompt": task.prompt,
        "template": task.template,
        "base": task.base,
        "merge": task.merge,
        "session": task.session,
        "command": list(task.command),
        "artifacts": list(task.artifacts),
        "artifacts_missing": list(task.artifacts_missing),
        "parallel": task.parallel,
        "locks": list(task.locks),
        "labels": list(task.labels),
        "workspace": task.workspace,
        "estimate_tokens": task.estimate_tokens,
        "timeout": None if task.timeout is None else show_duration(task.timeout),
        "max_attempts": task.max_attempts,
        "not_before": shown(task.not_before),
        "backoff_until": shown(task.backoff_until),
        "parked_at": shown(task.parked_at),
        "paused": task.paused,
        "source_hold": task.source_hold,
        "vars": dict(task.vars),
        "env": sorted(task.env),
        "meta": dict(task.meta),
        "lease": _lease(task),
    }


def _lease(task: Task) -> dict[str, Any] | None:
    lease = task.lease
    if lease is None:
        return None
    return {
        "lease": lease.id,
        "fence": lease.fence,
        "attempt": lease.attempt,
        "worker": lease.worker,
        "expires_at": shown(lease.expires_at),
        "started_at": shown(lease.started_at),
    }


def attempt(each: Attempt) -> dict[str, Any]:
    """One try at a task."""
    return {
        "attempt": each.number,
        "lease": each.lease,
        "fence": each.fence,
        "worker": each.worker,
        "workspace": each.workspace,
        "executor": each.executor,
        "leased_at": show_instant(each.leased_at),
        "started_at": shown(each.started_at),
        "ended_at": shown(each.ended_at),
        "expires_at": show_instant(each.expires_at),
        "outcome": each.outcome,
        "detail": each.detail,
        "note": each.note,
        "tokens": counters(each.tokens),
        "usd": dollars(each.usd),
        "estimate_tokens": each.estimate,
        "direct": each.direct,
        "session": each.session,
        "result": each.result,
    }


def event(each: Event) -> dict[str, Any]:
    """One line of the log; instants in its data are shown as such."""
    data = dict(each.data)
    for key in _INSTANTS & data.keys():
        data[key] = shown(data[key])  # type: ignore[arg-type]
    return {
        "number": each.number,
        "at": show_instant(each.at),
        "kind": each.kind,
        "task": each.task,
        "project": each.project,
        "data": data,
    }
