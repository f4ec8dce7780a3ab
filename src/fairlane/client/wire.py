"""The wire: connections that are kept, one request at a time on each; any thread may ask."""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection

from fairlane.client.address import Address
from fairlane.client.answers import lost, unreachable
from fairlane.client.requests import Request
from fairlane.model.errors import Refused

#: Longest silence before an answer, beside what the request itself waits for.
SILENCE_SECONDS = 30.0
#: Most of one answer.
ANSWER_BYTES_MAX = 64 * 1024 * 1024


class Wire:
    """Requests to one server. Nothing is followed elsewhere."""

    def __init__(self, address: Address, token: str | None) -> None:
        address.check_token(token)
        self.address = address
        self._headers = {"Accept": "application/json", "User-Agent": "fairlane"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._idle: deque[HTTPConnection] = deque()

    def close(self) -> None:
        """Nothing more is asked."""
        while self._idle:
            self._idle.pop().close()

    def exchange(self, request: Request, waits: float = 0.0) -> tuple[int, bytes]:
        """Status and body of the answer; a kept connection that was dropped is opened again."""
        kept = self._kept()
        if kept is not None:
            try:
                return self._ask(kept, request, waits)
            except (HTTPException, OSError) as error:
                kept.close()
                if not request.repeatable:
                    raise lost(self.address.url, _said(error), repeatable=False) from error
        connection = self._open(waits)
        try:
            return self._ask(connection, request, waits)
        except (HTTPException, OSError) as error:
            connection.close()
            raise lost(self.address.url, _said(error), request.repeatable) from error

    @contextmanager
    def stream(
        self, request: Request, more: dict[str, str], silence: float
    ) -> Iterator[HTTPResponse]:
        """An answer that goes on, on a connection of its own."""
        connection = self._open(silence - SILENCE_SECONDS)
        try:
            self._send(connection, request, more)
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()

    def _ask(self, connection: HTTPConnection, request: Request, waits: float) -> tuple[int, bytes]:
        if connection.sock is not None:
            connection.sock.settimeout(SILENCE_SECONDS + waits)
        self._send(connection, request, {})
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES_MAX + 1)
        if len(body) > ANSWER_BYTES_MAX:
            connection.close()
            hint = "Ask for less at once."
            raise Refused(f"{self.address.url} answers with too much", hint, code="too_large")
        if not answer.will_close:
            self._idle.append(connection)
        return answer.status, body

    def _send(self, connection: HTTPConnection, request: Request, more: dict[str, str]) -> None:
        headers = self._headers | more
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        target = self.address.prefix + request.target
        connection.request(request.method, target, request.body, headers)

    def _kept(self) -> HTTPConnection | None:
        """A connection that is still open; what is readable before it is asked has been closed."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was quicker
                return None
            if connection.sock and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        return None

    def _open(self, waits: float) -> HTTPConnection:
        kind = HTTPSConnection if self.address.secure else HTTPConnection
        timeout = SILENCE_SECONDS + waits
        connection = kind(self.address.host, self.address.port, timeout=timeout)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise unreachable(self.address.url, _said(error)) from error
        return connection


def _said(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
