"""One POST to a webhook: bounded in time and size, through the proxy if there is one.

It sends to the given address alone: a redirect is an answer like any other.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Timer
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from fairlane.clock import SYSTEM

SIGNATURE, TIMESTAMP, NUMBER = "X-Fairlane-Signature", "X-Fairlane-Timestamp", "X-Fairlane-Event"


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What a receiver compares: HMAC-SHA-256 of the timestamp, a dot and the body."""
    signed = timestamp.encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def shown(url: str) -> str:
    """An address without its secrets: user, password, path and query are left out."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{_place(parts)}/…"


def post(url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> int:
    """The status of the answer. `OSError`: there is none; its text has no secret.

    Only the head of the answer is read: at most a hundred headers.
    """
    ends = SYSTEM.monotonic() + seconds
    connection, target, own = _connect(urlsplit(url), seconds)
    cut = Timer(seconds, _cut, [connection])  # the socket's own timeout is for one read
    cut.daemon = True
    cut.start()
    try:
        connection.request("POST", target, body, {**headers, **own, "Connection": "close"})
        with connection.getresponse() as response:
            return response.status
    except (OSError, HTTPException) as error:
        if isinstance(error, TimeoutError) or SYSTEM.monotonic() >= ends:
            raise TimeoutError(f"no answer within {seconds:.3g} s") from None
        if isinstance(error, HTTPException) and not isinstance(error, OSError):
            raise ConnectionError("its answer is not HTTP") from None
        raise
    finally:
        cut.cancel()
        connection.close()


def _cut(connection: HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # closed, or not open yet
        connection.sock.shutdown(socket.SHUT_RDWR)


def _connect(parts: SplitResult, seconds: float) -> tuple[HTTPConnection, str, dict[str, str]]:
    """A connection that is not open yet, what to ask it for, and the headers for that."""
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    headers = _login(parts, "Authorization")
    path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    host = parts.hostname or ""
    proxy = None if proxy_bypass(host) else getproxies().get(parts.scheme)
    if not proxy:
        return kind(host, parts.port, timeout=seconds), path, headers
    via = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    connection = kind(via.hostname or "", via.port, timeout=seconds)
    login = _login(via, "Proxy-Authorization")
    if parts.scheme == "https":
        connection.set_tunnel(host, parts.port, login)
        return connection, path, headers
    return connection, f"http://{_place(parts)}{path}", headers | login


def _place(parts: SplitResult) -> str:
    """Host and port, without user and password."""
    return parts.netloc.rpartition("@")[2]


def _login(parts: SplitResult, header: str) -> dict[str, str]:
    if parts.username is None:
        return {}
    words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {header: "Basic " + base64.b64encode(words.encode()).decode()}
