"""The OpenAPI document, made from the table of operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlane import __version__
from fairlane.http.examples import example_of
from fairlane.service.operations import function_of
from fairlane.service.operations.documents import DOCUMENTS
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
    429: "Come later: deferred, or too many wrong tokens.",
    500: "A bug in Fairlane.",
    503: "Busy; ask again.",
}
_ABOUT = (
    "Every operation of Fairlane: the same JSON as `fairlane VERB --json`. The token stands in the"
    " home folder. Errors have one form."
)
_LEASE_TOKEN: Schema = {
    "type": "object",
    "properties": {"schema": {"const": "fairlane/1"}, "lease": {"type": "string"},
                   "token": {"type": "string"}},
    "required": ["schema", "lease", "token"],
}  # fmt: skip
_LINK: Schema = {
    "type": "object",
    "properties": {"schema": {"const": "fairlane/1"}, "path": {"type": "string"},
                   "seconds": {"type": "integer"}},
    "required": ["schema", "path", "seconds"],
}  # fmt: skip


def openapi() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS.values():
        _put(paths, operation.path, operation, operation.name)
        if operation.many:
            _put(paths, operation.many, operation, f"{operation.name}_many")
    lease = Operation("lease_token", "POST", "/leases/{lease}/token",
                      {"lease": OPERATIONS["heartbeat"].takes["lease"]}, ("lease",), "LeaseToken",
                      example={"lease": "L7"})  # fmt: skip
    link = Operation("link", "POST", "/links", gives="Link")
    _put(paths, lease.path, lease, lease.name, "A token that can act for this attempt alone.")
    _put(paths, link.path, link, link.name, "A link that opens the page once.")
    schemas = {**DOCUMENTS, "LeaseToken": _LEASE_TOKEN, "Link": _LINK}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fairlane", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/api/v1"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                f"Error{status}": _error(about, schemas["Error"])
                for status, about in ERRORS.items()
            },
        },
    }


def _put(
    paths: dict[str, dict[str, Any]], path: str, operation: Operation, name: str, about: str = ""
) -> None:
    said = about or (function_of(operation.name).__doc__ or "").strip()
    places = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    described: dict[str, Any] = {
        "operationId": name,
        "summary": said.splitlines()[0],
        "tags": [path.split("/")[1]],
        "parameters": [_place(operation, place) for place in places],
        "responses": _responses(operation),
    }
    rest = {key: schema for key, schema in operation.takes.items() if key not in places}
    if operation.method in ("GET", "DELETE"):
        described["parameters"] += [_query(operation, key, each) for key, each in rest.items()]
    elif rest:
        described["requestBody"] = _body(operation, rest)
    paths.setdefault(path, {})[operation.method.lower()] = described


def _place(operation: Operation, name: str) -> dict[str, Any]:
    schema = operation.takes[name]
    one = dict(schema.get("items", schema))
    if one["type"] == "string":
        one["minLength"] = 1
    return _parameter(operation, name, "path", one) | {"required": True}


def _query(operation: Operation, name: str, schema: Schema) -> dict[str, Any]:
    return _parameter(operation, name, "query", schema)


def _parameter(operation: Operation, name: str, where: str, schema: Schema) -> dict[str, Any]:
    plain = {key: value for key, value in schema.items() if key != "description"}
    found = {"name": name, "in": where, "schema": plain}
    if "description" in operation.takes[name]:
        found["description"] = operation.takes[name]["description"]
    if name in operation.example:
        given = operation.example[name]
        found["example"] = given[0] if where == "path" and isinstance(given, list) else given
    return found


def _body(operation: Operation, rest: Mapping[str, Schema]) -> dict[str, Any]:
    """An object of arguments; where one of them is the rest, whatever it may hold beside them."""
    named = {key: schema for key, schema in rest.items() if key != operation.rest}
    needed = [key for key in operation.needs if key in named]
    schema = {
        "type": "object",
        "properties": {
            key: each if key in needed else {"anyOf": [each, {"type": "null"}]}
            for key, each in named.items()
        },
        "required": needed,
        "additionalProperties": operation.rest is not None,
    }
    example = {key: value for key, value in operation.example.items() if key in named}
    example |= operation.example.get(operation.rest or "", {})
    required = bool(needed) or operation.rest is not None
    content = {"application/json": {"schema": schema, "example": example}}
    return {"required": required, "content": content}


def _responses(operation: Operation) -> dict[str, Any]:
    schema: Schema = {"$ref": f"#/components/schemas/{operation.gives}"}
    whole = (
        DOCUMENTS.get(operation.gives)
        or {"LeaseToken": _LEASE_TOKEN, "Link": _LINK}[operation.gives]
    )
    content: dict[str, Any] = {"application/json": {"schema": schema, "example": example_of(whole)}}
    if operation.name == "events":
        content["text/event-stream"] = {"schema": {"type": "string"}}
    found: dict[str, Any] = {
        str(each): {"$ref": f"#/components/responses/Error{each}"} for each in ERRORS
    }
    if operation.name == "add":
        either = {"anyOf": [schema, {"$ref": "#/components/schemas/Error"}]}
        told = {"application/json": {"schema": either}}
        found["429"] = {"description": ERRORS[429], "content": told}
    return {"200": {"description": "The document.", "content": content}, **found}


def _error(about: str, schema: Schema) -> dict[str, Any]:
    reference = {"$ref": "#/components/schemas/Error"}
    content = {"application/json": {"schema": reference, "example": example_of(schema)}}
    return {"description": about, "content": content}
