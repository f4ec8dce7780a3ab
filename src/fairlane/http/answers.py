"""Answers: documents as JSON, errors with the status that fits them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.types import Receive, Scope, Send

from fairlane.model.errors import FairlaneError, Invalid, NotFound, Refused, TryLater

#: Seconds after which a caller who was told to wait may ask again.
RETRY_SECONDS = 1
DEFERRED_SECONDS = 30

log = logging.getLogger("fairlane.http")
Headers = list[tuple[bytes, bytes]]
_JSON = (b"content-type", b"application/json")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


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


def to_json(document: Mapping[str, Any]) -> bytes:
    """A document in as few bytes as it needs."""
    return _encode(document).encode("utf-8", "replace")


def answer(
    document: Mapping[str, Any], status: int = 200, headers: Headers | None = None
) -> Answer:
    """A document as a response."""
    return Answer(status, to_json(document), [_JSON, *(headers or [])])


def answer_error(error: BaseException) -> Answer:
    """The error document with its status; what nobody foresaw is told to the log alone."""
    if not isinstance(error, FairlaneError):
        log.error("an operation failed", exc_info=error)
        hint = "This is a bug in Fairlane; its log has the trace."
        error = FairlaneError("something went wrong inside", hint, "internal")
        return answer(error.document(), 500)
    if isinstance(error, HttpError):
        return answer(error.document(), error.status, error.headers)
    wait: Headers = []
    if isinstance(error, TryLater):
        wait.append((b"retry-after", str(RETRY_SECONDS).encode()))
    return answer(error.document(), status_of(error), wait)


def status_of(error: FairlaneError) -> int:
    """The status of an error of an operation."""
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, Invalid):
        return 422
    if isinstance(error, TryLater):
        return 503
    return 409 if isinstance(error, Refused) else 500
