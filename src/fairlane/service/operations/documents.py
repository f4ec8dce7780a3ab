"""Documents: what every operation gives, as JSON Schema; `Operation.gives` names one of them.

Every key that is written here is always there. More may come; nothing goes away.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fairlane.service.operations.table import Schema

_STATUSES = ("queued", "leased", "running", "done", "parked", "canceled")

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
STATUS: Schema = {"type": "string", "enum": list(_STATUSES)}
ANY: Schema = {}


def _maybe(schema: Schema) -> Schema:
    """It, or null."""
    return dict(schema) | {"type": [schema["type"], "null"]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _by_name(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _object(keys: Mapping[str, Schema], **optional: Schema) -> Schema:
    """All keys are always there, but for the optional ones."""
    return {"type": "object", "properties": {**keys, **optional}, "required": list(keys)}


def _document(keys: Mapping[str, Schema], **optional: Schema) -> Schema:
    return _object({"schema": {"const": "fairlane/1"}, **keys}, **optional)


def _keys(schema: Schema, *names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, schema)


_HOLD = _object(
    _keys(TEXT, "gate", "code", "reason") | {"until": _maybe(TIME), "holders": _list(TEXT)}
)
_HELD = _object({**_HOLD["properties"], "count": WHOLE, "tasks": _list(TEXT)})
_ROW = (
    _keys(TEXT, "id", "project", "kind", "title", "reason", "stop_requested")
    | _keys(WHOLE, "priority", "attempts", "failures", "depth")
    | _keys(_maybe(TEXT), "group", "agent", "pool", "parent")
    | _keys(_maybe(TIME), "ready_since", "ended_at")
    | {"status": STATUS, "ready": FLAG, "hold": _maybe(_HOLD), "created_at": TIME}
)
_LEASE_HELD = _object(
    _keys(_maybe(TIME), "expires_at", "started_at")
    | {"lease": TEXT, "fence": WHOLE, "attempt": WHOLE, "worker": _maybe(TEXT)}
)
_WHOLE_TASK = _object(
    _ROW
    | _keys(TEXT, "prompt", "merge", "session", "source_hold")
    | _keys(_maybe(TEXT), "template", "base", "workspace", "timeout")
    | _keys(_maybe(TIME), "not_before", "backoff_until", "parked_at")
    | _keys(_maybe(WHOLE), "estimate_tokens", "max_attempts")
    | _keys(_list(TEXT), "command", "artifacts", "artifacts_missing", "locks", "labels", "env")
    | {"seq": WHOLE, "parallel": _maybe(FLAG), "paused": FLAG, "lease": _maybe(_LEASE_HELD)}
    | {"vars": _by_name(ANY), "meta": _by_name(ANY)}
)
_COUNTERS = _object(_keys(WHOLE, "input", "output", "cache_read", "cache_write"))
_ATTEMPT = _object(
    _keys(TEXT, "lease", "executor", "detail", "note")
    | _keys(WHOLE, "attempt", "fence", "estimate_tokens")
    | _keys(_maybe(TEXT), "worker", "workspace", "outcome", "session")
    | _keys(_maybe(TIME), "started_at", "ended_at")
    | _keys(TIME, "leased_at", "expires_at")
    | {"tokens": _COUNTERS, "usd": _maybe(NUMBER), "direct": FLAG}
    | {"result": {"type": ["object", "null"]}}
)
_EVENT = _object(
    _keys(_maybe(TEXT), "task", "project")
    | {"number": WHOLE, "at": TIME, "kind": TEXT, "data": _by_name(ANY)}
)
_LINKED = _object({"id": TEXT, "status": STATUS})
_PAUSE = _keys(TEXT, "scope", "by", "reason") | {"since": TIME}
_ROOM = _keys(_maybe(WHOLE), "cap", "free") | {"in_flight": WHOLE}
_QUEUED = _object(
    _keys(WHOLE, "total", "ready", "waiting", "held")
    | _keys(_by_name(WHOLE), "by_kind", "by_project")
)
_RUNNING = _object(
    _keys(TEXT, "task", "title", "project", "kind", "stop_requested", "lease", "note")
    | _keys(WHOLE, "attempt", "fence", "tokens", "estimate_tokens")
    | _keys(_maybe(TEXT), "agent", "worker", "workspace")
    | _keys(TIME, "leased_at", "expires_at")
    | {"status": STATUS, "started_at": _maybe(TIME), "usd": _maybe(NUMBER), "direct": FLAG}
)
_POOL = _object(
    _keys(TEXT, "name", "cause", "reason")
    | _keys(FLAG, "cooldown", "probing", "paused")
    | _keys(WHOLE, "hits", "in_flight")
    | {"until": _maybe(TIME), "cap": _maybe(WHOLE)}
)
_BUDGET = _object(
    _keys(TEXT, "scope", "window", "unit", "on_exceeded")
    | _keys(NUMBER, "used", "reserved", "limit", "fraction", "warn_at")
    | {"warn": FLAG, "frees_at": _maybe(TIME)}
)
_WORKER = _object(
    _keys(TEXT, "name", "host")
    | _keys(_maybe(WHOLE), "slots", "free")
    | _keys(_list(TEXT), "labels", "tasks")
    | {"seen_at": TIME, "live": FLAG}
)
_COUNTS = _object(_keys(WHOLE, *_STATUSES))
_PROJECT = _object(
    _keys(TEXT, "name", "status")
    | _keys(_maybe(TEXT), "repo", "base", "prefix", "agent", "template")
    | _keys(WHOLE, "weight", "tokens", "starts", "completions")
    | {"max_in_flight": _maybe(WHOLE), "paused": FLAG, "usd": NUMBER, "tasks": _COUNTS}
    | {"workspaces": _maybe(_list(TEXT)), "budgets": _list(_by_name(ANY))}
)
_GROUP = (
    _keys(TEXT, "name", "title", "progress")
    | _keys(WHOLE, "total", "ready", "waiting")
    | _keys(FLAG, "done", "stranded", "paused")
    | {"parent": _maybe(TEXT), "priority": _maybe(WHOLE), "by_status": _COUNTS}
    | {"groups": _list(TEXT)}
)
_WARNING = _object(_keys(TEXT, "code", "message"))
_SHARE: Schema = {"type": "object"}
_PARTS = _keys(WHOLE, "kind", "age", "depth", "retries")
_PICK = _object(
    _keys(TEXT, "task", "project", "kind", "worker")
    | _keys(WHOLE, "estimate_tokens", "score")
    | {"workspace": _maybe(TEXT), "score_parts": _object(_PARTS), "share": _SHARE}
)
_RECLAIM = _object({"task": TEXT, "lease": TEXT, "status": STATUS})
_DIGESTS = _object(_keys(TEXT, "snapshot", "policy", "plan"))
_DECISION = _keys(_list(TEXT), "picks", "reclaims") | {
    "decision": WHOLE,
    "at": TIME,
    "reason": TEXT,
    "policy": TEXT,
    "digests": _DIGESTS,
}
_PLAN = {
    "now": TIME,
    "capacity": _object(_ROOM),
    "picks": _list(_PICK),
    "reclaims": _list(_RECLAIM),
    "holds": _list(_HELD),
    "reason": TEXT,
    "wake_at": _maybe(TIME),
}


def _spread(*percents: int) -> Schema:
    return _object(_keys(_maybe(NUMBER), *(f"p{each}" for each in percents)) | {"count": WHOLE})


_LEASE = _object(
    _keys(TEXT, "lease", "task", "project", "kind", "title", "prompt")
    | _keys(WHOLE, "fence", "attempt", "estimate_tokens")
    | _keys(_maybe(TEXT), "worker", "agent", "workspace")
    | {"expires_at": TIME, "command": _list(TEXT), "vars": _by_name(ANY)}
)
_DONE = _object(
    _keys(TEXT, "id", "title", "project", "kind")
    | _keys(WHOLE, "attempt", "tokens")
    | {"ended_at": TIME, "seconds": NUMBER, "usd": _maybe(NUMBER)}
)
_FAILED = _object(
    _keys(TEXT, "id", "project", "outcome", "detail") | {"attempt": WHOLE, "ended_at": TIME}
)
_PARKED = _object(
    _keys(TEXT, "id", "title", "project", "reason") | {"parked_at": _maybe(TIME), "new": FLAG}
)
_USED = _keys(WHOLE, "tokens", "starts", "completions") | {"project": TEXT, "usd": NUMBER}
_SHARES = _object(
    _USED
    | _keys(NUMBER, "share", "target")
    | _keys(_spread(50, 95), "waits", "durations")
    | _keys(_maybe(WHOLE), "lag", "bound")
    | {"weight": WHOLE, "behind": _maybe(TEXT)}
)
_ESTIMATE = _object(
    _keys(TEXT, "project", "kind")
    | _keys(WHOLE, "attempts", "estimated", "used")
    | {"agent": _maybe(TEXT), "within": NUMBER}
)
_POINT = _object(_keys(WHOLE, "tokens", "starts", "completions"))
_BAR = _object(
    _keys(TEXT, "task", "project", "outcome") | _keys(TIME, "from", "to") | {"worker": _maybe(TEXT)}
)

#: The schema of every answer, by its name.
DOCUMENTS: Mapping[str, Schema] = MappingProxyType(
    {
        "Added": _document(
            {
                "tasks": _list(
                    _object(
                        {"id": TEXT, "created": FLAG, "status": STATUS, "position": _maybe(WHOLE)},
                        warning=TEXT,
                    )
                ),
                "deferred": FLAG,
            },
            dry_run=FLAG, code=TEXT, message=TEXT, hint=TEXT,
        ),
        "Tasks": _document({"tasks": _list(_object(_ROW))}, cursor=_maybe(WHOLE)),
        "Task": _document(
            {"task": _WHOLE_TASK, "hold": _maybe(_HOLD), "attempts": _list(_ATTEMPT)}
            | {"needs": _list(_LINKED), "dependents": _list(_LINKED), "events": _list(_EVENT)}
        ),
        "Changed": _document(
            {
                "tasks": _list(
                    _object(_keys(TEXT, "id", "reason", "stop_requested") | {"status": STATUS})
                )
            }
        ),
        "Status": _document(
            {
                "now": TIME,
                "paused": _list(_object(_PAUSE)),
                "capacity": _object(_ROOM | {"mode": TEXT}),
                "queued": _QUEUED,
                "parked": WHOLE,
                "running": _list(_RUNNING),
                "by_hold": _by_name(WHOLE),
                "holds": _list(_HELD),
                "pools": _list(_POOL),
                "budgets": _list(_BUDGET),
                "warnings": _list(_WARNING),
                "last_cycle": {"type": "object"},
                "wake_at": _maybe(TIME),
            }
        ),
        "Plan": _document(_PLAN | {"digests": _DIGESTS}),
        "Why": _document(
            _keys(TEXT, "task", "verdict")
            | {
                "status": STATUS,
                "holds": _list(_HOLD),
                "position": _maybe(WHOLE),
                "ahead": _list(ANY),
                "score": _maybe(_object(_PARTS | {"total": WHOLE})),
                "share": _maybe(_SHARE),
                "would_start_if": _list(_object({"change": TEXT, "apply": {"type": "object"}})),
                "starts": {"type": ["object", "null"]},
            }
        ),
        "Log": _document(
            _keys(TEXT, "task", "stream", "text")
            | _keys(WHOLE, "attempt", "offset", "next", "size")
            | {"ended": FLAG}
        ),
        "Events": _document({"events": _list(_EVENT), "cursor": WHOLE}),
        "Summary": _document(
            {
                "since": TIME,
                "now": TIME,
                "done": _object({"count": WHOLE, "tasks": _list(_DONE)}),
                "tokens": WHOLE,
                "usd": NUMBER,
                "projects": _list(_object(_USED)),
                "parked": _object({"count": WHOLE, "tasks": _list(_PARKED)}),
                "waits": _spread(50, 90),
                "attempts": _by_name(WHOLE),
                "failures": _list(_FAILED),
                "in_flight": WHOLE,
                "queued": _QUEUED,
                "needs_person": _list(_object(_keys(TEXT, "what", "why"))),
            }
        ),
        "Stats": _document(
            {
                "since": TIME,
                "now": TIME,
                "projects": _list(_SHARES),
                "throughput": _object({"done": WHOLE, "per_hour": NUMBER}),
                "waits": _spread(50, 95),
                "durations": _spread(50, 95),
                "estimates": _list(_ESTIMATE),
                "series": _object(
                    {"at": _list(TIME), "step_seconds": WHOLE, "projects": _by_name(_list(_POINT))}
                ),
                "timeline": _list(_BAR),
            }
        ),
        "Decisions": _document(
            {"decisions": _list(_object(_DECISION)), "cursor": _maybe(WHOLE)}
        ),
        "Decision": _document(_DECISION | {"plan": {"type": "object"}}),
        "Replayed": _document(
            {
                "replayed": WHOLE,
                "different": _list(_object({"decision": WHOLE, "differences": _list(TEXT)})),
            }
        ),
        "Leases": _document({"leases": _list(_LEASE), "reason": TEXT}),
        "Held": _document(
            {"lease": TEXT, "task": TEXT, "status": STATUS},
            expires_at=TIME, stop=FLAG, late=FLAG, code=TEXT,
        ),
        "Reclaimed": _document(
            _keys(_list(TEXT), "reclaimed", "parked"), taken_in=_list(TEXT), started=_list(TEXT)
        ),
        "Paused": _document(_PAUSE | {"changed": FLAG}),
        "Resumed": _document(
            {"changed": FLAG, "scope": TEXT, "paused": _list(_object(_PAUSE))}
        ),
        "Cleared": _document(
            _keys(_by_name(WHOLE), "by_kind", "by_project")
            | {"scope": TEXT, "dry_run": FLAG, "count": WHOLE, "tasks": _list(TEXT)}
        ),
        "Policy": _document(
            {"preset": _maybe(TEXT), "file": _maybe(TEXT), "digest": TEXT, "policy": _by_name(ANY)}
            | {"keys": _list(_object({"key": TEXT, "value": ANY, "origin": TEXT}))}
        ),
        "PolicyChanged": _document(
            {"file": TEXT, "digest": TEXT}
            | {"differences": _list(_object({"key": TEXT, "a": ANY, "b": ANY}))}
        ),
        "Projects": _document({"projects": _list(_PROJECT)}),
        "Project": _document({"project": _PROJECT}, created=FLAG),
        "Removed": _document({"removed": TEXT, "archived": FLAG}),
        "Groups": _document({"groups": _list(_object(_GROUP))}),
        "Group": _document({"group": _object(_GROUP)}, created=FLAG),
        "Pools": _document({"pools": _list(_POOL)}),
        "Pool": _document({"pool": _POOL}),
        "Workers": _document({"workers": _list(_WORKER)}),
        "Worker": _document({"worker": _WORKER}),
        "Error": _document({"error": _object(_keys(TEXT, "code", "message", "hint"))}),
    }
)  # fmt: skip
