"""The fields of a task as a schema: what the tool `add` tells agents. Intake checks them."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "flag": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}},
    "table": {"type": "object"},
}
#: Field -> its type, and what it is.
_FIELDS: dict[str, tuple[str, str]] = {
    "id": ("text", "Its name; known ones are returned as they are. Default: t1, t2, …"),
    "prompt": ("text", "What the agent is told."),
    "title": ("text", "What people read; default: the prompt's first line."),
    "project": ("text", "Whose it is; default: default."),
    "kind": ("text", "plan, spec, phase, code, review, …; default: code."),
    "agent": ("text", "Who does it: claude, codex, …"),
    "command": ("list", "A command line to run instead of an agent's."),
    "priority": ("number", "Lower goes first; default: 100."),
    "parent": ("text", "The task that makes this one."),
    "needs": ("list", "Ids of tasks that must be done before."),
    "artifacts": ("list", "Paths that must exist before."),
    "group": ("text", "Followed together with others; made on first use."),
    "parallel": ("flag", "May go beside others of its group."),
    "locks": ("list", "Names that at most one task holds."),
    "workspace": ("text", "The workspace it prefers."),
    "pool": ("text", "Whose limits it shares; default: the agent's."),
    "labels": ("list", "What its worker must have: gpu."),
    "estimate_tokens": ("number", "What it may use; default: from history."),
    "timeout": ("text", "Stopped after this long: 30m, 4h."),
    "max_attempts": ("number", "Parked after so many failures."),
    "not_before": ("text", "Not earlier than this time (RFC 3339)."),
    "template": ("text", "The prompt's template; none: as it is."),
    "base": ("text", "The branch where its worktree starts."),
    "merge": ("text", "After success: keep, merge or pr."),
    "session": ("text", "On a retry: resume (default) or fresh."),
    "vars": ("table", "For the template."),
    "env": ("table", "For its process; never shown."),
    "meta": ("table", "Your own."),
}


def task_schema() -> dict[str, Any]:
    """One task to add. Unknown fields are refused by name, so they are not forbidden here."""
    properties = {
        name: _TYPES[kind] | {"description": about} for name, (kind, about) in _FIELDS.items()
    }
    return {"type": "object", "properties": properties}
