"""Answers: a document, or the error that the same call raises at the server itself."""

from __future__ import annotations

import json
from typing import Any

from fairlane.model.errors import FairlaneError, Invalid, NotFound, Refused, TryLater

#: Status of an answer -> what it raises.
_RAISED: dict[int, type[FairlaneError]] = {
    400: Invalid,
    401: Refused,
    403: Refused,
    404: NotFound,
    409: Refused,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TryLater,
    503: TryLater,
}
#: What to do where the server does not know what the caller has.
_HINTS = {
    401: "Give the token of the server's home folder: FAIRLANE_TOKEN, or FAIRLANE_HOME.",
    403: "Ask it by the name it serves, such as http://127.0.0.1:7117.",
    413: "Send less at once.",
}


def document_of(url: str, status: int, body: bytes) -> dict[str, Any]:
    """The document of an answer; an error document is raised."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or "schema" not in document:
        raise _not_ours(url, status)
    if status < 300 and "error" not in document:
        return document
    if not isinstance(document.get("error"), dict):
        return document  # deferred: nothing was stored, and the document says why
    raise _error(status, document["error"])


def _error(status: int, told: dict[str, Any]) -> FairlaneError:
    kind = _RAISED.get(status, FairlaneError)
    hint = _HINTS.get(status) or str(told.get("hint", ""))
    return kind(str(told.get("message", "refused")), hint, str(told.get("code", kind.code)))


def _not_ours(url: str, status: int) -> FairlaneError:
    if 300 <= status < 400:
        hint = "Give the URL of Fairlane itself; redirects are not followed."
        return Refused(f"{url} sends callers elsewhere ({status})", hint, code="redirected")
    if status in (502, 503, 504):
        return unreachable(url, f"answered {status}")
    hint = "Is this the URL of `fairlane up`?"
    return Refused(f"{url} does not answer as Fairlane does ({status})", hint, code="not_fairlane")


def unreachable(url: str, reason: str) -> TryLater:
    """Nobody answers there."""
    hint = "Start it where its home folder is: fairlane up. Or give another --url."
    return TryLater(f"{url} cannot be reached: {reason}", hint, code="unreachable")


def lost(url: str, reason: str, repeatable: bool) -> TryLater:
    """The answer did not come; what changes something may have happened."""
    hint = "Ask again." if repeatable else "It may have been done: look before you ask again."
    return TryLater(f"{url} did not answer: {reason}", hint, code="no_answer")
