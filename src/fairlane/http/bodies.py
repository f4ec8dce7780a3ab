"""Bodies: one JSON object, read strictly. What two readers could read differently is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from starlette.types import Receive, Scope

from fairlane.http.answers import HttpError
from fairlane.model.errors import Invalid

#: Most bytes of a body.
BODY_BYTES_MAX = 8 * 1024 * 1024
#: Objects and lists within each other, at most.
DEPTH_MAX = 64


class Gone(Exception):
    """The caller has hung up, or was answered already."""


async def read_object(scope: Scope, receive: Receive) -> dict[str, Any]:
    """The body as an object; no body is an empty one."""
    data = await read_bytes(receive)
    if not data:
        return {}
    kind = header(scope, b"content-type").split(b";")[0].strip().lower()
    if kind != b"application/json":
        shown = kind.decode("latin-1") or "nothing"
        hint = "Send JSON with Content-Type: application/json."
        raise HttpError(415, "content_type", f"the body is said to be {shown}", hint)
    return parse_object(data)


async def read_bytes(receive: Receive) -> bytes:
    """The whole body; how much and how slow it may be, the guard has seen to."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Gone
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def parse_object(data: bytes) -> dict[str, Any]:
    """An object out of bytes, or what is wrong with them."""
    try:
        found = _decoder.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Invalid("the body is not UTF-8 text", str(error)) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise Invalid(f"the body is not JSON: {error}", 'Send an object: {"limit": 1}.') from None
    if not isinstance(found, dict):
        raise Invalid("the body is no object", 'Send an object: {"limit": 1}.')
    _refuse_deep(found)
    if b"\\u" in data:
        _refuse_odd(found)
    return found


def header(scope: Scope, name: bytes) -> bytes:
    """A header's value; empty if it is not there."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return b""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} is given twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond all numbers")
    return number


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_constant)


def _refuse_deep(found: Any) -> None:
    level, depth = [found], 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise _too_deep()
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [x for values in inner for x in values if isinstance(x, dict | list)]


def _refuse_odd(found: Any) -> None:
    """Half of a surrogate pair and a null character are no text; nobody could hand them on."""
    text = json.dumps(found, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        message = "the body is not JSON: half of a surrogate pair is no character"
        raise Invalid(message, "Write the character itself.") from None
    if "\\u0000" in text.replace("\\\\", ""):
        raise Invalid("the body has a null character in it", "Leave it out.")


def _too_deep() -> Invalid:
    hint = "Put what is so deep into a text."
    return Invalid(f"the body is nested more than {DEPTH_MAX} deep", hint)
