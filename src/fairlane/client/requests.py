"""Requests as the table says that HTTP wants them; answers as documents, or the errors raised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from fairlane.model.errors import FairlaneError, Invalid, NotFound, Refused, TryLater, did_you_mean
from fairlane.service.operations.table import OPERATIONS, Operation

#: Status of an answer -> what it raises.
_RAISED: dict[int, type[FairlaneError]] = {
    **dict.fromkeys((400, 413, 415, 422), Invalid),
    **dict.fromkeys((401, 403, 409), Refused),
    **dict.fromkeys((429, 503), TryLater),
    404: NotFound,
}
#: What to do where the server does not know what the caller has.
_HINTS = {
    401: "Give the token of the server's home folder: FAIRLANE_TOKEN, or FAIRLANE_HOME.",
    403: "Ask it by the name it serves, such as http://127.0.0.1:7117.",
    413: "Send less at once.",
}


def document_of(url: str, status: int, body: bytes) -> Any:
    """The document of an answer; an error document is raised."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or "schema" not in document:
        raise _not_ours(url, status)
    error = document.get("error")
    if not isinstance(error, dict) or status == 200:
        return document  # also deferred, and checks that failed: the document says why
    kind = _RAISED.get(status, FairlaneError)
    hint = _HINTS.get(status) or str(error.get("hint", ""))
    raise kind(str(error.get("message", "refused")), hint, str(error.get("code", kind.code)))


def _not_ours(url: str, status: int) -> FairlaneError:
    if 300 <= status < 400:
        hint = "Give the URL of Fairlane itself; redirects are not followed."
        return Refused(f"{url} sends callers elsewhere ({status})", hint, code="redirected")
    if status in (502, 503, 504):
        return unreachable(url, f"answered {status}")
    hint = "Is this the URL of `fairlane up`?"
    return Refused(f"{url} does not answer as Fairlane does ({status})", hint, code="not_fairlane")


def unreachable(url: str, reason: str) -> TryLater:
    """The server cannot be reached."""
    hint = "Start it where its home folder is: fairlane up. Or give another --url."
    return TryLater(f"{url} cannot be reached: {reason}", hint, code="unreachable")


def lost(url: str, reason: str, repeatable: bool) -> TryLater:
    """No answer; a write may have happened."""
    hint = "Ask again." if repeatable else "It may have been done: look before you ask again."
    return TryLater(f"{url} did not answer: {reason}", hint, code="no_answer")


class Request(NamedTuple):
    """One request; it may be sent again where that changes nothing more."""

    method: str
    target: str  # below /api/v1
    body: bytes | None
    repeatable: bool


def request_of(name: str, arguments: Mapping[str, object]) -> Request:
    """The request that asks an operation; what is None is not sent."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise Invalid(f"there is no operation {name!r}", did_you_mean(name, OPERATIONS))
    values = {key: value for key, value in arguments.items() if value is not None}
    for key in operation.needs:
        if key not in values:
            about = operation.takes[key].get("description", "")
            raise Invalid(f"{name}: {key} is missing", about)
    path = _path(operation, values)
    repeatable = operation.reads or operation.method in ("GET", "DELETE")
    if operation.method in ("GET", "DELETE"):
        query = urlencode({key: _text(value) for key, value in values.items()}, doseq=True)
        return Request(operation.method, f"{path}?{query}" if query else path, None, repeatable)
    rest = values.pop(operation.rest, None) if operation.rest else None
    values |= rest if isinstance(rest, Mapping) else {}
    return Request(operation.method, path, as_json(values), repeatable)


def _path(operation: Operation, values: dict[str, object]) -> str:
    """The path; removes the arguments that are part of it from `values`."""
    ids = values.get("ids")
    if operation.many is not None and not (isinstance(ids, list | tuple) and len(ids) == 1):
        return operation.many
    path = operation.path
    for name in operation.places:
        value = values.pop(name)
        one = value[0] if name == "ids" and isinstance(value, list | tuple) else value
        path = path.replace(f"{{{name}}}", quote(str(one), safe=""))
    return path


def _text(value: object) -> str | list[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    return list(map(str, value)) if isinstance(value, list | tuple) else str(value)


def as_json(document: Mapping[str, object]) -> bytes:
    """A document as it is sent."""
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"this cannot be sent as JSON: {error}", "Give plain values.") from error


def _plain(value: object) -> object:
    """Send mappings and sets of any kind as objects and lists, times as text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no JSON")
