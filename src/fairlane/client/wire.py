"""The wire: a server's address, and connections to it that are kept; any thread may ask."""

from __future__ import annotations

import ipaddress
import os
import select
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

from fairlane.client.requests import Request, lost, unreachable
from fairlane.model.errors import Invalid, Refused

#: Set to 1, it lets a token go over plain HTTP to another machine.
ALLOW = "FAIRLANE_ALLOW_PLAIN_HTTP"
_PORTS = {"http": 80, "https": 443}
#: Where the operations are, below the URL.
API = "/api/v1"


class Address(NamedTuple):
    """A server's URL in its parts."""

    url: str
    secure: bool
    host: str
    port: int
    prefix: str  # of every path

    @classmethod
    def of(cls, url: str) -> Address:
        """The address that a URL names; anything but a plain one is refused."""
        hint = "Write it as http://127.0.0.1:7117."
        bad = Invalid(f"not the URL of a server: {url!r}", hint, code="invalid_url")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise bad from None
        if parts.scheme not in _PORTS or not host or not url.isascii() or not url.isprintable():
            raise bad
        if parts.username is not None or parts.query or parts.fragment:
            more = f"{hint} The token goes into FAIRLANE_TOKEN."
            said = f"{parts.scheme}://{host}"
            raise Invalid(f"a URL with more than a host and a path: {said}", more, "invalid_url")
        prefix = parts.path.rstrip("/").removesuffix(API)
        secure = parts.scheme == "https"
        return cls(url.rstrip("/"), secure, host, port or _PORTS[parts.scheme], prefix + API)

    def check_token(self, token: str | None) -> None:
        """Refuse to send a token over plain HTTP, except to loopback or where it is allowed."""
        if token is None:
            return
        if not token.isascii() or not token.isprintable() or " " in token:
            raise Invalid("this is no token", "It is one word, in the server's home folder.")
        if self.secure or is_loopback(self.host) or os.environ.get(ALLOW) == "1":
            return
        hint = f"Use https, or a tunnel to its loopback; {ALLOW}=1 sends it all the same."
        message = f"the token is not sent over plain HTTP to {self.host}"
        raise Refused(message, hint, code="plain_http")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
        idle = self._kept()
        if idle is not None:
            try:
                return self._ask(idle, request, waits)
            except (HTTPException, OSError) as error:
                idle.close()
                if not request.repeatable:
                    raise lost(self.address.url, _said(error), repeatable=False) from error
        connection = self._open(waits)
        try:
            return self._ask(connection, request, waits)
        except (HTTPException, OSError) as error:
            connection.close()
            raise lost(self.address.url, _said(error), request.repeatable) from error

    @contextmanager
    def stream(self, request: Request, more: dict[str, str]) -> Iterator[HTTPResponse]:
        """A streaming answer, on a connection of its own."""
        connection = self._open(waits=SILENCE_SECONDS)
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
