"""Examples: a document as an answer's schema describes it, with values that look like real ones."""

from __future__ import annotations

from typing import Any

from fairlane.service.operations.table import Schema

_TIME = "2026-01-30T12:00:00Z"
#: What stands under a key, wherever it stands.
_VALUES: dict[str, Any] = {
    "id": "t1", "task": "t1", "tasks": ["t1"], "picks": ["t1"], "project": "web", "kind": "code",
    "lease": "L7", "fence": 7, "attempt": 1, "attempts": 1, "priority": 100, "worker": "box1",
    "title": "Fix the login form", "prompt": "Fix the login form", "agent": "claude",
    "pool": "anthropic", "number": 42, "cursor": 42, "weight": 1, "scope": "project:web",
    "by": "ada", "gate": "caps", "code": "cap", "reason": "cap project:web is full (2)",
    "message": "no task 't9'", "hint": "`fairlane list` shows what there is.", "name": "web",
    "host": "box1", "stream": "stdout", "text": "tests are green\n", "tokens": 12800, "usd": 0.21,
    "count": 1, "total": 1, "ready": 1, "decision": 1, "verdict": "starts next", "position": 1,
    "merge": "keep", "session": "resume", "executor": "process", "mode": "deferred",
    "progress": "7 of 12 done", "key": "caps.all", "origin": "policy.toml", "a": 4, "b": 8,
    "value": 8, "preset": "balanced", "digest": "c152521b", "file": "policy.toml",
    "token": "L7.Zx0…", "path": "/open?key=…", "seconds": 600, "window": "24h", "unit": "tokens",
}  # fmt: skip
_PLAIN: dict[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "null": None, "object": {},
    "array": [],
}  # fmt: skip


def example_of(schema: Schema, key: str = "") -> Any:
    """A value that fits a schema."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if "null" in kinds and not isinstance(kinds, str) and key not in _VALUES:
        return None
    if schema.get("format") == "date-time":
        return _TIME
    if kind == "object":
        inner = schema.get("properties", {})
        return {name: example_of(inner[name], name) for name in schema.get("required", ())}
    known = _VALUES.get(key)
    if kind == "array":
        if isinstance(known, list) and schema["items"].get("type") == "string":
            return known
        return [example_of(schema["items"])] if schema["items"].get("type") == "object" else []
    return known if _fits(kind, known) else _PLAIN[kind]


def _fits(kind: str, value: Any) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind in ("integer", "number"):
        return isinstance(value, int) or (kind == "number" and isinstance(value, float))
    return False
