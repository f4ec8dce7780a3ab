"""Rows and values: how a task, an attempt and the rest are written and read."""

from __future__ import annotations

import json
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from fairlane.model.codec import decode, encode, writer
from fairlane.model.frozen import changed, filled, layout
from fairlane.model.lane import LaneKey
from fairlane.model.task import Lease, Status, Task
from fairlane.store.base import Attempt, Booking, Placed
from fairlane.store.sqlite.errors import Damaged

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


#: JSON without spaces.
dump = writer()


def parse(text: str) -> Any:
    """JSON that was written here; anything else is damage."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise Damaged(f"a value that is not JSON ({error})") from error


_read_facts, _no_facts = attrgetter(*_FACTS), tuple(_FACTS.values())
_read_body, _no_body = attrgetter(*_BODY), tuple(_BODY.values())


def facts_of(task: Task) -> str:
    """What has happened to a task, as JSON; what did not is left out."""
    held = _read_facts(task)
    return "{}" if held == _no_facts else _said(_FACTS, held)


def body_of(task: Task) -> str:
    """What a task says, as JSON; what it does not say is left out."""
    held = _read_body(task)
    return "{}" if held == _no_body else _said(_BODY, held)


def _said(empty: dict[str, Any], held: tuple[Any, ...]) -> str:
    pairs = zip(empty.items(), held, strict=True)
    return dump({name: value for (name, nothing), value in pairs if value != nothing})


def task_row(placed: Placed, lane: int | None) -> tuple[Any, ...]:
    """A whole new row."""
    task, wait, due_at = placed
    return (
        task.seq, task.id, task.project, task.kind, str(task.status), lane, wait, due_at,
        task.created_at, task.ready_since, task.ended_at, task.estimate_tokens, task.priority,
        task.depth, task.failures, task.attempts, task.agent, task.pool, task.group, task.parent,
        facts_of(task), body_of(task), task.prompt,
    )  # fmt: skip


#: Columns of a row that are fields of a task as they are.
_FIELDS = {
    "seq": 0, "id": 1, "project": 2, "kind": 3, "created_at": 8, "ready_since": 9, "ended_at": 10,
    "estimate_tokens": 11, "priority": 12, "depth": 13, "failures": 14, "attempts": 15,
    "agent": 16, "pool": 17, "group": 18, "parent": 19, "prompt": 22,
}  # fmt: skip
_PLACES = layout(Task).places
_BLANK = tuple(layout(Task).blank)
_WIDTH = len(TASK_COLUMNS.split(","))
_in_order = itemgetter(*[_FIELDS.get(name, _WIDTH + at) for name, at in _PLACES.items()])
_STATUS, _LEASE = _PLACES["status"], _PLACES["lease"]


def task_of(row: tuple[Any, ...], lease: Lease | None = None) -> Task:
    """A task from its row."""
    held = list(_in_order(row + _BLANK))
    held[_STATUS] = Status(row[4])
    held[_LEASE] = lease
    for text in (row[20], row[21]):
        if text != "{}":
            for name, value in parse(text).items():
                held[_PLACES[name]] = tuple(value) if name in _LISTS else value
    return filled(Task, held)


@lru_cache(4096)
def key_text(key: LaneKey) -> str:
    """A lane's key as it is kept."""
    return dump(key)


@lru_cache(4096)
def key_of(text: str) -> LaneKey:
    """A lane's key from what is kept."""
    parts = parse(text)
    parts[8], parts[10] = tuple(parts[8]), tuple(parts[10])
    return LaneKey(*parts)


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


_read_attempt_body = attrgetter(*_ATTEMPT_BODY)
_no_attempt_body = [_ATTEMPT_EMPTY.get(name) for name in _ATTEMPT_BODY]


def attempt_row(attempt: Attempt) -> tuple[Any, ...]:
    """An attempt as it is kept."""
    held = zip(_ATTEMPT_BODY, _read_attempt_body(attempt), _no_attempt_body, strict=True)
    body = {name: value for name, value, nothing in held if value != nothing}
    return (
        attempt.fence, attempt.lease, attempt.task, attempt.project, attempt.kind, attempt.agent,
        attempt.number, attempt.worker, attempt.leased_at, attempt.expires_at, attempt.ended_at,
        attempt.outcome, *attempt.tokens, attempt.usd, dump(body),
    )  # fmt: skip


#: Columns of a row that are fields of an attempt as they are.
_ATTEMPT_FIELDS = {
    "fence": 0, "lease": 1, "task": 2, "project": 3, "kind": 4, "agent": 5, "number": 6,
    "worker": 7, "leased_at": 8, "expires_at": 9, "ended_at": 10, "outcome": 11, "usd": 16,
}  # fmt: skip
_ATTEMPT_PLACES = layout(Attempt).places
_ATTEMPT_BLANK = tuple(layout(Attempt).blank)
_ATTEMPT_WIDTH = len(ATTEMPT_COLUMNS.split(","))
_attempt_in_order = itemgetter(
    *[_ATTEMPT_FIELDS.get(name, _ATTEMPT_WIDTH + at) for name, at in _ATTEMPT_PLACES.items()]
)


def attempt_of(row: tuple[Any, ...]) -> Attempt:
    """An attempt from its row."""
    held = list(_attempt_in_order(row + _ATTEMPT_BLANK))
    held[_ATTEMPT_PLACES["tokens"]] = row[12:16]
    for name, value in parse(row[17]).items():
        held[_ATTEMPT_PLACES[name]] = value
    return filled(Attempt, held)


_LEASE_ALONE = Lease()


def lease_of(attempt: Attempt) -> Lease:
    """The lease of an attempt that has not ended; what it used is counted elsewhere."""
    return changed(
        _LEASE_ALONE,
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


@lru_cache(4096)
def value_of(kind: Any, text: str) -> Any:
    """A small frozen value from its JSON."""
    return decode(kind, parse(text))
