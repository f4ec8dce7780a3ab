"""Requests: an operation and its arguments as the table says that HTTP wants them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.service.operations.table import OPERATIONS, Operation


class Request(NamedTuple):
    """One request; it may be sent again where that changes nothing more."""

    method: str
    target: str  # below /api/v1
    body: bytes | None
    repeatable: bool


def request_of(name: str, arguments: Mapping[str, Any]) -> Request:
    """The request that asks an operation; what is None is not sent."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise Invalid(f"there is no operation {name!r}", did_you_mean(name, OPERATIONS))
    held = {key: value for key, value in arguments.items() if value is not None}
    for key in operation.needs:
        if key not in held:
            about = operation.takes[key].get("description", "")
            raise Invalid(f"{name}: {key} is missing", about)
    path = _path(operation, held)
    repeatable = operation.reads or operation.method in ("GET", "DELETE")
    if operation.method in ("GET", "DELETE"):
        query = urlencode({key: _text(value) for key, value in held.items()}, doseq=True)
        return Request(operation.method, f"{path}?{query}" if query else path, None, repeatable)
    rest = held.pop(operation.rest, {}) if operation.rest else {}
    return Request(operation.method, path, _body({**held, **rest}), repeatable)


def _path(operation: Operation, held: dict[str, Any]) -> str:
    """The path, with the arguments that stand in it taken out of `held`."""
    if operation.many is not None and len(held.get("ids", ())) != 1:
        return operation.many
    path = operation.path
    for name in operation.places:
        value = held.pop(name)
        one = value[0] if name == "ids" else value
        path = path.replace(f"{{{name}}}", quote(str(one), safe=""))
    return path


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return [str(each) for each in value] if isinstance(value, list | tuple) else str(value)


def _body(document: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"this cannot be sent as JSON: {error}", "Give plain values.") from error


def _plain(value: Any) -> Any:
    """Mappings and sets of any kind are sent as objects and lists, times as text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no JSON")
