"""Tasks and attempts as every interface shows them; values of `env` are never shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from fairlane.model.amounts import ANSWER_BYTES
from fairlane.model.event import Event
from fairlane.model.instant import Instant, show_duration, show_instant
from fairlane.model.plan import Hold
from fairlane.model.project import Pause, Tokens, counted
from fairlane.model.task import Attempt, Status, Task
from fairlane.policy.policy import Policy
from fairlane.service.reports import merging
from fairlane.store.base import Booking, Placed

if TYPE_CHECKING:
    from fairlane.model.documents import parts, tasks

#: What in the data of an event is an instant or a length.
_SHOWN: Mapping[str, Callable[[int], str]] = {
    "expires_at": show_instant,
    "until": show_instant,
    "resets_at": show_instant,
    "wait": show_duration,
}


def shown(when: Instant | None) -> str | None:
    """An instant, if there is one."""
    return None if when is None else show_instant(when)


def dollars(micros: int | None) -> float | None:
    """Micro-dollars as dollars."""
    return None if micros is None else micros / 1_000_000


def counters(tokens: tuple[int, int, int, int]) -> parts.CountersDocument:
    """The four counters by name."""
    first, second, third, fourth = tokens
    return {"input": first, "output": second, "cache_read": third, "cache_write": fourth}


def counts(by_status: Mapping[str, int]) -> parts.CountsDocument:
    """Tasks by status; what is missing is 0."""
    return cast("parts.CountsDocument", {word: by_status.get(word, 0) for word in map(str, Status)})


def tokens_of(used: Attempt | Booking | None, policy: Policy) -> int:
    """The tokens of an attempt or a booking that the policy counts."""
    return counted(Tokens(*used.tokens), policy.usage.count) if used else 0


def pause_document(pause: Pause) -> parts.PauseDocument:
    """A pause as every interface shows it."""
    return {
        "scope": pause.scope,
        "by": pause.by,
        "since": show_instant(pause.since or 0),
        "reason": pause.reason,
    }


def linked(task: str, status: Status) -> tasks.LinkedDocument:
    """A task that another document names."""
    return {"id": task, "status": str(status)}


def row(
    placed: Placed, hold: Hold | None, last: Attempt | None = None, worked: bool = False
) -> tasks.TaskDocument:
    """A task as lists show it; `last` is its last attempt with a record of what it changed."""
    task = placed.task
    state = merging.state_of(task, last, worked)
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
        "hold": hold and hold.document(),
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
        "merge_state": state,
        "needs_person": merging.needs_person(task, last, state),
        "starts": None,
    }


def title_of(task: Task) -> str:
    """What a person reads: its title, else the first line of its prompt, else its command."""
    lines = (line.strip() for line in task.prompt.splitlines())
    return task.title or next(filter(None, lines), "") or " ".join(task.command)


def is_ready(placed: Placed, hold: Hold | None) -> bool:
    """Whether a queued task waits for nothing of its own."""
    if placed.task.status is not Status.QUEUED:
        return False
    return not placed.wait or hold is None or hold.gate != "readiness"


def whole(
    placed: Placed, hold: Hold | None, last: Attempt | None = None, worked: bool = False
) -> tasks.FullTaskDocument:
    """Everything that a task says and what has happened to it."""
    task = placed.task
    return {
        **row(placed, hold, last, worked),
        "seq": task.seq,
        "prompt": task.prompt,
        "template": task.template,
        "base": task.base,
        "merge": task.merge,
        "session": task.session,
        "carry": task.carry,
        "context": task.context,
        "checks": [check.document() for check in task.checks],
        "no_checks": task.no_checks,
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


def _lease(task: Task) -> tasks.TaskLeaseDocument | None:
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


def attempt(row: Attempt) -> tasks.AttemptDocument:
    """One try at a task."""
    return {
        "attempt": row.number,
        "lease": row.lease,
        "fence": row.fence,
        "worker": row.worker,
        "workspace": row.workspace,
        "executor": row.executor,
        "leased_at": show_instant(row.leased_at),
        "started_at": shown(row.started_at),
        "ended_at": shown(row.ended_at),
        "expires_at": show_instant(row.expires_at),
        "outcome": row.outcome,
        "detail": row.detail,
        "note": row.note,
        "tokens": counters(row.tokens),
        "usd": dollars(row.usd),
        "estimate_tokens": row.estimate,
        "direct": row.direct,
        "session": row.session,
        "result": None if row.result is None else dict(row.result),
    }


def answer_of(row: Attempt) -> str | None:
    """The final answer of an attempt; None: it has not ended, or gave none."""
    answer = (row.result or {}).get("answer")
    if not isinstance(answer, str) or not answer:
        return None
    return answer.encode("utf-8", "replace")[:ANSWER_BYTES].decode("utf-8", "ignore")


def last_answer(attempts: Sequence[Attempt]) -> str | None:
    """The answer of the last attempt that has ended."""
    ended = [row for row in attempts if row.ended_at is not None]
    return answer_of(ended[-1]) if ended else None


def event(event: Event) -> tasks.EventDocument:
    """One line of the log; instants and lengths in its data are text."""
    data = dict(event.data)
    for key, show in _SHOWN.items():
        value = data.get(key)
        if isinstance(value, int):
            data[key] = show(value)
    return {
        "number": event.number,
        "at": show_instant(event.at),
        "kind": event.kind,
        "task": event.task,
        "project": event.project,
        "data": data,
    }
