"""An HTTP server on loopback that answers from a script, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

TOKEN = "a-token-of-this-test"


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    peer: tuple[str, int]  # another one is another connection


class Reply(NamedTuple):
    """One answer. `drop`: hang up instead; `close`: hang up afterwards, without saying so."""

    document: Any = None
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012
    drop: bool = False
    close: bool = False


Script = Callable[[Asked], Reply]


class Scripted:
    """Serves while it is entered."""

    def __init__(self, *replies: Reply | dict[str, Any], script: Script | None = None) -> None:
        self._replies = [r if isinstance(r, Reply) else Reply(r) for r in replies]
        self._script = script
        self.asked: list[Asked] = []
        own = type("Own", (_Line,), {"place": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), own)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Scripted:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, asked: Asked) -> Reply:
        """The next of the script; the last one is repeated."""
        self.asked.append(asked)
        if self._script is not None:
            return self._script(asked)
        return self._replies[min(len(self.asked), len(self._replies)) - 1]


class _Line(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    place: Scripted

    def log_message(self, *_: object) -> None: ...

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, body, self.client_address)
        reply = self.place.answer(asked)
        if reply.drop:
            self.close_connection = True
            return
        raw = isinstance(reply.document, bytes)
        data = reply.document if raw else json.dumps(reply.document).encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        if reply.close:
            self.close_connection = True

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of the library
