"""The OpenAPI document, made from the table of operations, with examples from the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from fairlane import __version__
from fairlane.service.operations.call import function_of
from fairlane.service.operations.schemas import DOCUMENTS, AnswerSchema
from fairlane.service.operations.table import OPERATIONS, Operation, Schema

#: Every status that an operation may answer with beside 200, and what it means.
ERRORS = {
    401: "No token, a wrong one, or one in the address.",
    403: "A foreign Host or Origin, or not for the token of an attempt.",
    404: "There is no such thing.",
    405: "Not with this method.",
    408: "The body came too slowly.",
    409: "Refused: it cannot be done now.",
    413: "The body is too large.",
    415: "The body is not said to be JSON.",
    422: "Invalid; nothing was changed.",
    429: "Come later: deferred, too many wrong tokens, or another simulation is under way.",
    500: "A bug in Fairlane.",
    503: "Busy; ask again.",
}
Json: TypeAlias = dict[str, object]
_ABOUT = (
    "Every operation of Fairlane: the same JSON as `fairlane VERB --json`. The token stands in the"
    " home folder. Errors have one form."
)


def openapi() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, Json] = {}
    for operation in OPERATIONS.values():
        _put(paths, operation.path, operation, operation.name)
        if operation.many:
            _put(paths, operation.many, operation, f"{operation.name}_many")
    lease = Operation("lease_token", "", "POST", "/leases/{lease}/token",
                      {"lease": OPERATIONS["heartbeat"].takes["lease"]}, ("lease",), "LeaseToken",
                      example={"lease": "L7"})  # fmt: skip
    link = Operation("link", "", "POST", "/links", gives="Link")
    _put(paths, lease.path, lease, lease.name, "A token that can act for this attempt alone.")
    _put(paths, link.path, link, link.name, "A link that opens the page once.")
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fairlane", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/api/v1"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(DOCUMENTS),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                f"Error{status}": _error(about, DOCUMENTS["Error"])
                for status, about in ERRORS.items()
            },
        },
    }


def _put(
    paths: dict[str, Json], path: str, operation: Operation, name: str, about: str = ""
) -> None:
    """Describe an operation at a path; paths that differ only in a name are one."""
    said = about or (function_of(operation.name).__doc__ or "").strip()
    places = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [_path_parameter(operation, key) for key in places]
    rest = {key: schema for key, schema in operation.takes.items() if key not in places}
    body: Json = {}
    if operation.method in ("GET", "DELETE"):
        parameters += [_parameter(operation, key, "query", kind) for key, kind in rest.items()]
    elif rest:
        body["requestBody"] = _body(operation, rest)
    described = {
        "operationId": name,
        "summary": said.splitlines()[0],
        "tags": [path.split("/")[1]],
        "parameters": parameters,
        "responses": _responses(operation),
        **body,
    }
    paths.setdefault(shown_path(path), {})[operation.method.lower()] = described


def shown_path(path: str) -> str:
    """The path of an operation as the document names its parts: one of `ids` is a task."""
    return path.replace("{ids}", "{task}")


def _path_parameter(operation: Operation, name: str) -> Json:
    schema = operation.takes[name]
    one: dict[str, object] = {**schema.get("items", schema)}
    if one["type"] == "string":
        one["minLength"] = 1
    shown = "task" if name == "ids" else name
    return _parameter(operation, name, "path", one) | {"name": shown, "required": True}


def _parameter(operation: Operation, name: str, where: str, schema: Mapping[str, object]) -> Json:
    plain = {key: value for key, value in schema.items() if key != "description"}
    parameter: dict[str, object] = {"name": name, "in": where, "schema": plain}
    if "description" in operation.takes[name]:
        parameter["description"] = operation.takes[name]["description"]
    if name in operation.example:
        example = operation.example[name]
        if where == "path" and isinstance(example, list):
            example = example[0]
        parameter["example"] = example
    return parameter


def _body(operation: Operation, rest: Mapping[str, Schema]) -> Json:
    """An object of arguments; where one of them is the rest, whatever it may hold beside them."""
    named = {key: schema for key, schema in rest.items() if key != operation.rest}
    needed = [key for key in operation.needs if key in named]
    schema = {
        "type": "object",
        "properties": {
            key: part if key in needed else {"anyOf": [part, {"type": "null"}]}
            for key, part in named.items()
        },
        "required": needed,
        "additionalProperties": operation.rest is not None,
    }
    example = {key: value for key, value in operation.example.items() if key in named}
    rest_example = operation.example.get(operation.rest or "")
    example |= rest_example if isinstance(rest_example, dict) else {}
    required = bool(needed) or operation.rest is not None
    content = {"application/json": {"schema": schema, "example": example}}
    return {"required": required, "content": content}


def _responses(operation: Operation) -> Json:
    schema = {"$ref": f"#/components/schemas/{operation.gives}"}
    example = example_of(DOCUMENTS[operation.gives])
    content: Json = {"application/json": {"schema": schema, "example": example}}
    if operation.name == "events":
        content["text/event-stream"] = {"schema": {"type": "string"}}
    errors: Json = {
        str(status): {"$ref": f"#/components/responses/Error{status}"} for status in ERRORS
    }
    if operation.name == "add":
        either = {"anyOf": [schema, {"$ref": "#/components/schemas/Error"}]}
        deferred = {"application/json": {"schema": either}}
        errors["429"] = {"description": ERRORS[429], "content": deferred}
    return {"200": {"description": "The document.", "content": content}, **errors}


def _error(about: str, schema: AnswerSchema) -> Json:
    reference = {"$ref": "#/components/schemas/Error"}
    content = {"application/json": {"schema": reference, "example": example_of(schema)}}
    return {"description": about, "content": content}


_TIME = "2026-01-30T12:00:00Z"
#: Example values by key.
_VALUES: dict[str, object] = {
    "id": "t1", "task": "t1", "tasks": ["t1"], "picks": ["t1"], "project": "web", "kind": "code",
    "lease": "L7", "fence": 7, "attempt": 1, "attempts": 1, "priority": 100, "worker": "box1",
    "title": "Fix the login form", "prompt": "Fix the login form", "agent": "claude",
    "pool": "anthropic", "number": 42, "cursor": 42, "weight": 1, "scope": "project:web",
    "by": "ada", "gate": "caps", "code": "cap", "reason": "cap project:web is full (2)",
    "message": "there is no task 't9'", "hint": "`fairlane list` shows what there is.",
    "name": "web", "host": "box1", "stream": "stdout",
    "text": "tests are green\n", "tokens": 12800, "usd": 0.21,
    "count": 1, "total": 1, "ready": 1, "decision": 1, "verdict": "starts next", "position": 1,
    "merge": "keep", "session": "resume", "executor": "process", "mode": "deferred",
    "progress": "7 of 12 done", "key": "caps.all", "origin": "policy.toml", "a": 4, "b": 8,
    "value": 8, "preset": "balanced", "digest": "c152521b", "file": "policy.toml",
    "token": "L7.Zx0…", "path": "/open?key=…", "seconds": 600, "window": "24h", "unit": "tokens",
}  # fmt: skip
_PLAIN: dict[str, object] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "null": None, "object": {},
    "array": [],
}  # fmt: skip
_TYPES = {"string": (str,), "integer": (int,), "number": (int, float)}


def example_of(schema: AnswerSchema, key: str = "") -> object:
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
    return known if isinstance(known, _TYPES.get(kind, ())) else _PLAIN[kind]
