"""Answers: the headers that everything of the page is sent with, and errors as documents."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from fairlane.model.errors import FairlaneError, Invalid, NotFound, TryLater
from fairlane.page import CSP
from fairlane.page.html import visible

HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_CODES: dict[type[FairlaneError], int] = {NotFound: 404, Invalid: 422, TryLater: 503}


def refused(error: FairlaneError) -> Response:
    """An error as programs read it."""
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), 409)
    shown = FairlaneError(visible(error.message), visible(error.hint), error.error_code)
    return JSONResponse(shown.document(), code, headers=HEADERS)
