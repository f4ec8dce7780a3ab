"""Rows and values: how a task, an attempt and the rest are written and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from fairlane.model.codec import decode, encode, writer
from fairlane.model.project import (
    Group,
    History,
    Pause,
    PolicyText,
    Pool,
    Project,
    SmallRow,
    WorkerRow,
    key_of,
)
from fairlane.model.record import NamedTuple, changed, filled, layout
from fairlane.model.task import Attempt, Check, LaneKey, Lease, Status, Task, lane_key
from fairlane.store.base import Booking, Placed

#: One row of a result.
Row = tuple[Any, ...]


class Damaged(Exception):
    """A row that nobody of ours has written, or a page that is not there."""


#: What a task says beside its columns, with what it is when nothing was said.
_BODY: dict[str, object] = {
    "title": "", "template": None, "base": None, "merge": "keep", "session": "resume",
    "carry": "base", "context": "none", "checks": (), "no_checks": False, "command": (),
    "needs": (), "artifacts": (), "parallel": None, "locks": (),
    "workspace": None, "labels": (), "timeout": None, "max_attempts": None, "not_before": None,
    "vars": {}, "env": {}, "meta": {},
}  # fmt: skip
#: What has happened to it beside its columns.
_FACTS: dict[str, object] = {
    "launch_failures": 0, "setbacks": 0, "releases": 0, "check_rounds": 0, "half_opened": False,
    "backoff_until": None, "parked_at": None, "lost_fence": None, "reason": "",
    "stop_requested": "", "artifacts_missing": (), "source_hold": "", "paused": False,
}  # fmt: skip
_LISTS = ("command", "needs", "artifacts", "locks", "labels", "artifacts_missing")

TASK_COLUMNS = (
    "seq, id, project, kind, status, lane, wait, due_at, created_at, ready_since, ended_at,"
    " estimate, priority, depth, failures, attempts, agent, pool, in_group, parent, facts, body,"
    " prompt"
)
_LEASED = ("detail", "session", "note", "host", "handle", "workspace", "started_at")


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
#: What most tasks say: they are written and read without JSON.
_USUAL = {"carry": "needs", "context": "needs"}
_usual_body, _usual_text = tuple((_BODY | _USUAL).values()), dump(_USUAL)


def facts_of(task: Task) -> str:
    """What has happened to a task, as JSON; what did not is left out."""
    values = _read_facts(task)
    return "{}" if values == _no_facts else _said(_FACTS, values)


def body_of(task: Task) -> str:
    """What a task says, as JSON; what it does not say is left out."""
    values = _read_body(task)
    if values == _usual_body:
        return _usual_text
    return "{}" if values == _no_body else _said(_BODY, values)


def _said(empty: dict[str, object], values: tuple[object, ...]) -> str:
    pairs = zip(empty.items(), values, strict=True)
    return dump({name: value for (name, nothing), value in pairs if value != nothing})


def task_row(placed: Placed, lane: int | None) -> Row:
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
_STATUS, _LEASE, _CHECKS = _PLACES["status"], _PLACES["lease"], _PLACES["checks"]
_CHECK_LIST: Any = tuple[Check, ...]


def task_of(row: Row, lease: Lease | None = None) -> Task:
    """A task from its row."""
    fields = list(_in_order(row + _BLANK))
    fields[_STATUS] = Status(row[4])
    fields[_LEASE] = lease
    for text in (row[20], row[21]):
        if text != "{}":
            said = _USUAL if text == _usual_text else parse(text)
            for name, value in said.items():
                fields[_PLACES[name]] = tuple(value) if name in _LISTS else value
    if fields[_CHECKS]:
        fields[_CHECKS] = decode(_CHECK_LIST, fields[_CHECKS])
    return filled(Task, fields)


@lru_cache(4096)
def key_text(key: LaneKey) -> str:
    """A lane's key as text."""
    return dump(key)


@lru_cache(4096)
def lane_key_of(text: str) -> LaneKey:
    """A lane's key from its text."""
    return lane_key(parse(text))


ATTEMPT_COLUMNS = (
    "fence, lease, task, project, kind, agent, number, worker, leased_at, expires_at, ended_at,"
    " outcome, input, output, cache_read, cache_write, usd, body"
)
#: The same without the record of what it changed, which is long.
ENDED_COLUMNS = ATTEMPT_COLUMNS.replace("body", "json_remove(body, '$.work')")
_ATTEMPT_BODY = (
    "estimate", "weight", "charged", "workspace", "started_at", "detail", "host", "handle",
    "executor", "direct", "session", "note", "result",
    "work", "checks",
)  # fmt: skip
_ATTEMPT_EMPTY = {
    "estimate": 0, "weight": 1, "charged": 0, "detail": "", "executor": "none", "direct": False,
    "note": "", "checks": (),
}  # fmt: skip


_read_attempt_body = attrgetter(*_ATTEMPT_BODY)
_no_attempt_body = [_ATTEMPT_EMPTY.get(name) for name in _ATTEMPT_BODY]


def attempt_row(attempt: Attempt) -> Row:
    """The row of an attempt."""
    fields = zip(_ATTEMPT_BODY, _read_attempt_body(attempt), _no_attempt_body, strict=True)
    body = {name: value for name, value, nothing in fields if value != nothing}
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


def attempt_of(row: Row) -> Attempt:
    """An attempt from its row."""
    fields = list(_attempt_in_order(row + _ATTEMPT_BLANK))
    fields[_ATTEMPT_PLACES["tokens"]] = row[12:16]
    for name, value in parse(row[17]).items():
        fields[_ATTEMPT_PLACES[name]] = tuple(value) if name == "checks" else value
    return filled(Attempt, fields)


def booking_of(row: Row) -> Booking:
    """Usage from (scope, minute, four counters, usd, starts, completions)."""
    return Booking(row[0], row[1], tuple(row[2:6]), row[6], row[7], row[8])


def text_of(value: SmallRow) -> str:
    """A small value as JSON."""
    return dump(encode(value))


@lru_cache(4096)
def value_of(kind: Any, text: str) -> Any:
    """A small frozen value from its JSON."""
    return decode(kind, parse(text))


class Codec(NamedTuple):
    """How the rows of a small table are read and written; statements are named after it."""

    name: str
    read: Callable[[Row], SmallRow]
    write: Callable[[Any], Row]


def _project_of(row: Row) -> Project:
    project: Project = value_of(Project, row[0])
    return changed(project, clock=row[1], present=bool(row[2]))


def _project_row(project: Project) -> Row:
    body = text_of(changed(project, clock=None, present=True))
    return project.name, project.clock, int(project.present), body


def _body_codec(name: str, kind: Hashable) -> Codec:
    """For rows that are a key and everything as JSON."""
    return Codec(name, lambda row: value_of(kind, row[0]), lambda row: (key_of(row), text_of(row)))


#: The small tables by what their rows are.
CODECS: dict[type[SmallRow], Codec] = {
    Project: Codec("projects", _project_of, _project_row),
    Group: Codec(
        "groups", lambda row: Group(*row), attrgetter("name", "parent", "priority", "title")
    ),
    Pool: _body_codec("pools", Pool),
    WorkerRow: _body_codec("workers", WorkerRow),
    Pause: _body_codec("pauses", Pause),
    History: Codec(
        "history",
        lambda row: History(row[0], row[1], row[2] or None, *row[3:]),
        lambda row: (row.project, row.kind, row.agent or "", row.estimate, row.tokens, row.usd),
    ),
    PolicyText: Codec("policies", lambda row: PolicyText(*row), attrgetter("digest", "text")),
}
