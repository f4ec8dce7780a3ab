"""Rows and values: how a task, an attempt and the rest are written and read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fairlead.model.codec import decode, encode
from fairlead.model.lane import Entry, LaneKey
from fairlead.model.task import Lease, Status, Task
from fairlead.store.base import Attempt, Booking, Placed
from fairlead.store.sqlite.errors import Damaged

#: What a task says beside its columns, with what it is when nothing was said.
_BODY: dict[str, Any] = {
    "title": "", "template": None, "base": None, "merge": "keep", "session": "resume",
    "command": (), "needs": (), "artifacts": (), "parallel": None, "locks": (),
    "workspace": None, "labels": (), "timeout": None, "max_attempts": None, "not_before": None,
    "vars": {}, "env": {}, "meta": {},
}  # fmt: skip
#: What has happened to it beside its columns.
_FACTS: dict[str, Any] = {
    "launch_failures": 0, "setbacks": 0, "releases": 0, "half_opened": False,
    "backoff_until": None, "parked_at": None, "lost_fence": None, "reason": "",
    "stop_requested": "", "artifacts_missing": (), "source_hold": "", "paused": False,
}  # fmt: skip
_LISTS = ("command", "needs", "artifacts", "locks", "labels", "artifacts_missing")

TASK_COLUMNS = (
    "seq, id, project, kind, status, lane, wait, due_at, created_at, ready_since, ended_at,"
    " estimate, priority, depth, failures, attempts, agent, pool, in_group, parent, facts, body,"
    " prompt"
)
_LEASED = ("detail", "session", "note", "host", "pid", "pid_started", "workspace", "started_at")


def dump(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def parse(text: str) -> Any:
    """JSON that was written here; anything else is damage."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise Damaged(f"a value that is not JSON ({error})") from error


def facts_of(task: Task) -> str:
    """What has happened to a task, as JSON; what did not is left out."""
    said = {name: held for name, empty in _FACTS.items() if (held := getattr(task, name)) != empty}
    return dump(said) if said else "{}"


def body_of(task: Task) -> str:
    """What a task says, as JSON; what it does not say is left out."""
    said = {name: held for name, empty in _BODY.items() if (held := getattr(task, name)) != empty}
    return dump(said) if said else "{}"


def task_row(placed: Placed, lane: int | None) -> tuple[Any, ...]:
    """A whole new row."""
    task, wait, due_at = placed
    return (
        task.seq, task.id, task.project, task.kind, task.status.value, lane, wait, due_at,
        task.created_at, task.ready_since, task.ended_at, task.estimate_tokens, task.priority,
        task.depth, task.failures, task.attempts, task.agent, task.pool, task.group, task.parent,
        facts_of(task), body_of(task), task.prompt,
    )  # fmt: skip


def task_of(row: tuple[Any, ...], lease: Lease | None = None) -> Task:
    """A task from its row."""
    facts = parse(row[20]) if row[20] != "{}" else {}
    body = parse(row[21]) if row[21] != "{}" else {}
    for name in _LISTS:
        for part in (facts, body):
            if name in part:
                part[name] = tuple(part[name])
    return Task(
        id=row[1], seq=row[0], project=row[2], kind=row[3], status=Status(row[4]),
        created_at=row[8], ready_since=row[9], ended_at=row[10], estimate_tokens=row[11],
        priority=row[12], depth=row[13], failures=row[14], attempts=row[15], agent=row[16],
        pool=row[17], group=row[18], parent=row[19], prompt=row[22], lease=lease, **facts, **body,
    )  # fmt: skip


def key_text(key: LaneKey) -> str:
    """A lane's key as it is kept."""
    return dump(key)


def key_of(text: str) -> LaneKey:
    """A lane's key from what is kept."""
    parts = parse(text)
    parts[8], parts[10] = tuple(parts[8]), tuple(parts[10])
    return LaneKey(*parts)


def entry_of(row: Iterable[Any]) -> Entry:
    """A lane's task from (id, seq, created_at, ready_since, estimate)."""
    return Entry(*row)


ATTEMPT_COLUMNS = (
    "fence, lease, task, project, kind, agent, number, worker, leased_at, expires_at, ended_at,"
    " outcome, input, output, cache_read, cache_write, usd, body"
)
_ATTEMPT_BODY = (
    "estimate", "weight", "charged", "workspace", "started_at", "detail", "host", "pid",
    "pid_started", "executor", "direct", "session", "note", "result",
)  # fmt: skip
_ATTEMPT_EMPTY = {
    "estimate": 0, "weight": 1, "charged": 0, "detail": "", "executor": "none", "direct": False,
    "note": "",
}  # fmt: skip


def attempt_row(attempt: Attempt) -> tuple[Any, ...]:
    """An attempt as it is kept."""
    body = {
        name: held
        for name in _ATTEMPT_BODY
        if (held := getattr(attempt, name)) != _ATTEMPT_EMPTY.get(name)
    }
    return (
        attempt.fence, attempt.lease, attempt.task, attempt.project, attempt.kind, attempt.agent,
        attempt.number, attempt.worker, attempt.leased_at, attempt.expires_at, attempt.ended_at,
        attempt.outcome, *attempt.tokens, attempt.usd, dump(body),
    )  # fmt: skip


def attempt_of(row: tuple[Any, ...]) -> Attempt:
    """An attempt from its row."""
    return Attempt(
        fence=row[0], lease=row[1], task=row[2], project=row[3], kind=row[4], agent=row[5],
        number=row[6], worker=row[7], leased_at=row[8], expires_at=row[9], ended_at=row[10],
        outcome=row[11], tokens=tuple(row[12:16]), usd=row[16], **parse(row[17]),
    )  # fmt: skip


def lease_of(attempt: Attempt) -> Lease:
    """The lease of an attempt that has not ended; what it used is counted elsewhere."""
    return Lease(
        id=attempt.lease,
        fence=attempt.fence,
        attempt=attempt.number,
        worker=attempt.worker,
        expires_at=attempt.expires_at,
        started_at=attempt.leased_at,
        estimate=attempt.estimate,
        direct=attempt.direct,
    )


def booking_of(row: tuple[Any, ...]) -> Booking:
    """Usage from (scope, minute, four counters, usd, starts, completions)."""
    return Booking(row[0], row[1], tuple(row[2:6]), row[6], row[7], row[8])


def text_of(value: Any) -> str:
    """A small value as JSON."""
    return dump(encode(value))


def value_of(kind: Any, text: str) -> Any:
    """A small value from its JSON."""
    return decode(kind, parse(text))
