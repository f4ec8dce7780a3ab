"""Messages: reads a JSON object strictly; answers documents, and errors with their status."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from typing import NoReturn

from starlette.types import Receive, Scope, Send

from fairlane.model.errors import (
    Busy,
    FairlaneError,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    TryLater,
)
from fairlane.model.values import once

#: `Retry-After`, in seconds.
RETRY_SECONDS = 1

log = logging.getLogger("fairlane.http")
Headers = list[tuple[bytes, bytes]]
_JSON = (b"content-type", b"application/json")
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class HttpError(FairlaneError):
    """An error of the protocol: it has a status of its own, and headers."""

    code = "http"

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Headers | None = None
    ) -> None:
        super().__init__(message, hint, code)
        self.status, self.headers = status, headers or []


class Answer:
    """One whole response; it is an application that sends itself."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: Headers) -> None:
        self.status, self.body = status, body
        self.headers = [*headers, (b"content-length", str(len(body)).encode())]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a HEAD gets no body."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        body = b"" if scope["method"] == "HEAD" else self.body
        await send({"type": "http.response.body", "body": body})


def answer(
    document: Mapping[str, object], status: int = 200, headers: Headers | None = None
) -> Answer:
    """A document as a response."""
    return Answer(status, to_json(document).encode("utf-8", "replace"), [_JSON, *(headers or [])])


def answer_error(error: BaseException) -> Answer:
    """The error document with its status; the details of a bug are only logged."""
    if not isinstance(error, FairlaneError):
        log.error("an operation failed", exc_info=error)
        hint = "This is a bug in Fairlane; its log has the trace."
        error = FairlaneError("something went wrong inside", hint, "internal")
        return answer(error.document(), 500)
    if isinstance(error, HttpError):
        return answer(error.document(), error.status, error.headers)
    wait = [(b"retry-after", str(RETRY_SECONDS).encode())] if isinstance(error, TryLater) else []
    return answer(error.document(), status_of(error), wait)


def refusal(error: Exception, scope: Scope) -> Answer:
    """The error document; for a browser without a cookie, a page that says how to log in."""
    reads_html = b"text/html" in header(scope, b"accept")
    if not isinstance(error, HttpError) or error.status != 401 or not reads_html:
        return answer_error(error)
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Fairlane</title>"
        "<meta name=viewport content='width=device-width'>"
        "<h1>This page opens by a link</h1>"
        "<p>In a terminal, <code>fairlane link</code> prints one. It works once; this browser is"
        " then remembered.</p></html>"
    )
    headers = [(b"content-type", b"text/html; charset=utf-8"), *error.headers]
    return Answer(error.status, text.encode(), headers)


#: Kind of error -> its status, the narrower kind first.
_STATUSES = (
    (Forbidden, 403), (NotFound, 404), (Invalid, 422), (Busy, 429), (TryLater, 503), (Refused, 409),
)  # fmt: skip


def status_of(error: FairlaneError) -> int:
    """The status of an error of an operation."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


#: Most bytes of a body.
BODY_BYTES_MAX = 8 * 1024 * 1024
#: Objects and lists within each other, at most.
DEPTH_MAX = 64


class Gone(Exception):
    """The caller has hung up, or was answered already."""


async def read_object(scope: Scope, receive: Receive) -> dict[str, object]:
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
    """The whole body; the guard limits its size and speed."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Gone
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def parse_object(data: bytes) -> dict[str, object]:
    """An object out of bytes, or what is wrong with them."""
    try:
        document = _decoder.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Invalid("the body is not UTF-8 text", str(error)) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise Invalid(f"the body is not JSON: {error}", 'Send an object: {"limit": 1}.') from None
    if not isinstance(document, dict):
        raise Invalid("the body is no object", 'Send an object: {"limit": 1}.')
    _refuse_deep(document)
    if b"\\u" in data:
        _refuse_odd(document)
    return document


def header(scope: Scope, name: bytes) -> bytes:
    """A header's value; empty if it is not there."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return b""


def cookies_of(scope: Scope, name: str) -> list[str]:
    """The values of all cookies of a name: another port of this host can set it too."""
    headers = (value.decode("latin-1") for key, value in scope["headers"] if key == b"cookie")
    pairs = (part.strip().partition("=") for text in headers for part in text.split(";"))
    return [value for key, _, value in pairs if key == name]


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond all numbers")
    return number


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


_decoder = json.JSONDecoder(object_pairs_hook=once, parse_float=_finite, parse_constant=_constant)


def _refuse_deep(document: dict[str, object]) -> None:
    level: list[dict[str, object] | list[object]] = [document]
    depth = 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise _too_deep()
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [x for values in inner for x in values if isinstance(x, dict | list)]


def _refuse_odd(document: dict[str, object]) -> None:
    """Refuse half a surrogate pair and a null character: they cannot be stored as text."""
    text = json.dumps(document, ensure_ascii=False)
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
