"""Tools: one for each operation that agents may call, straight from the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from fairlane.mcp.fields import task_schema
from fairlane.service.operations import function_of
from fairlane.service.operations.documents import DOCUMENTS
from fairlane.service.operations.table import OPERATIONS, Operation

#: What takes something away, or puts another value in its place.
_DESTRUCTIVE = ("cancel", "policy_set")
#: What changes nothing more when it is called again with the same arguments.
_REPEATABLE = ("cancel", "complete", "heartbeat", "pause", "policy_set", "reclaim", "resume")


def tools() -> list[Tool]:
    """Every tool, named as the verb."""
    return [_tool(operation) for operation in OPERATIONS.values() if operation.tool]


def arguments_of(operation: Operation, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was given, and the defaults that the tool names for the rest."""
    told = {name: value for name, value in (given or {}).items() if value is not None}
    fixed = {
        name: schema["default"] for name, schema in operation.takes.items() if "default" in schema
    }
    return fixed | told


def result_of(document: Mapping[str, Any], failed: bool = False) -> CallToolResult:
    """A document as what a tool gives: structured, and the same as text."""
    text = json.dumps(document, ensure_ascii=False)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=dict(document),
        is_error=failed,
    )


def _tool(operation: Operation) -> Tool:
    properties = {name: dict(schema) for name, schema in operation.takes.items()}
    if operation.name == "add":
        properties["tasks"]["items"] = task_schema()
    asked: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": list(operation.needs),
        "additionalProperties": False,
    }
    return Tool(
        name=operation.name,
        description=function_of(operation.name).__doc__,
        input_schema=asked,
        output_schema=dict(DOCUMENTS[operation.gives]),
        annotations=ToolAnnotations(
            read_only_hint=operation.reads,
            destructive_hint=operation.name in _DESTRUCTIVE,
            idempotent_hint=operation.reads or operation.name in _REPEATABLE,
            open_world_hint=False,
        ),
    )
