"""Tools: one for each operation that agents may call, from the table; and a task's fields."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from fairlane.service.operations.call import function_of
from fairlane.service.operations.schemas import DOCUMENTS
from fairlane.service.operations.table import OPERATIONS, Operation

_TYPES: dict[str, dict[str, object]] = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "flag": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}},
    "table": {"type": "object"},
    "commands": {
        "type": "array",
        "items": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "object"}]},
    },
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
    "carry": ("text", "Start from its needs' work (needs) or from the base branch (base)."),
    "context": ("text", "Tell the agent what its needs did: needs or none."),
    "checks": ("commands", 'Commands that must pass before it is done: [["make", "test"]].'),
    "no_checks": ("flag", "Run no checks, not even the project's."),
    "session": ("text", "On a retry: resume (default) or fresh."),
    "vars": ("table", "For the template."),
    "env": ("table", "For its process; never shown."),
    "meta": ("table", "Your own."),
}


def task_schema() -> dict[str, object]:
    """One task to add. Unknown fields are refused by name, so they are not forbidden here."""
    properties = {
        name: _TYPES[kind] | {"description": about} for name, (kind, about) in _FIELDS.items()
    }
    return {"type": "object", "properties": properties}


#: What takes something away, or puts another value in its place.
_DESTRUCTIVE = ("cancel", "policy_set")
#: What changes nothing more when it is called again with the same arguments.
_REPEATABLE = ("cancel", "complete", "heartbeat", "pause", "policy_set", "reclaim", "resume")


#: The operations that agents may call, by the names of their tools.
OFFERED = {each.tool_name: each for each in OPERATIONS.values() if each.tool}


def tools() -> list[Tool]:
    """Every tool, named as the verb."""
    return [_tool(operation) for operation in OFFERED.values()]


def arguments_of(operation: Operation, arguments: Mapping[str, object] | None) -> dict[str, object]:
    """What was given, and the defaults that the tool names for the rest."""
    values = {name: value for name, value in (arguments or {}).items() if value is not None}
    defaults = {
        name: schema["default"] for name, schema in operation.takes.items() if "default" in schema
    }
    return defaults | values


def result_of(document: Mapping[str, object], failed: bool = False) -> CallToolResult:
    """A document as what a tool gives: structured, and the same as text."""
    text = json.dumps(document, ensure_ascii=False)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=dict(document),
        is_error=failed,
    )


def _tool(operation: Operation) -> Tool:
    properties: dict[str, dict[str, object]] = {
        name: {**schema} for name, schema in operation.takes.items()
    }
    if operation.name == "add":
        properties["tasks"]["items"] = task_schema()
    takes: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "required": list(operation.needs),
        "additionalProperties": False,
    }
    return Tool(
        name=operation.tool_name,
        description=(function_of(operation.name).__doc__ or "").splitlines()[0],
        input_schema=takes,
        output_schema={**DOCUMENTS[operation.gives]},
        annotations=ToolAnnotations(
            read_only_hint=operation.reads,
            destructive_hint=operation.name in _DESTRUCTIVE,
            idempotent_hint=operation.reads or operation.name in _REPEATABLE,
            open_world_hint=False,
        ),
    )
