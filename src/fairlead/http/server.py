"""The server: sockets, connections with limits, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlead.http.answers import to_json
from fairlead.http.streams import Streams
from fairlead.model.errors import FairleadError, Invalid, Refused

#: Most connections, and most requests that are answered at once.
CONNECTIONS_MAX = 2_000
#: A head that is not whole after so long, or larger than this, does not come.
HEAD_SECONDS, HEAD_BYTES_MAX = 30.0, 64 * 1024
#: A connection that is not asked anything for so long is closed.
IDLE_SECONDS = 20
#: A caller who does not read for so long is let go.
STUCK_SECONDS = 30.0
#: How long what is being answered may take after the server was told to end.
GRACE_SECONDS = 5


class Connection(HttpToolsProtocol):
    """A connection whose caller may be neither slow nor endless."""

    _timer: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The head of the first request is awaited."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        _cancel(self._timer)
        _cancel(self._stuck)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a head are counted, those of a body by whoever reads it."""
        if self._timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX and not self._ends_in(data):
                self.send_400_response("The head is too large.")
                return
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP has the error document too."""
        error = FairleadError(msg, "Send HTTP/1.1.", "bad_request")
        body = to_json(error.document())
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _ends_in(self, data: bytes) -> bool:
        """Whether the head is over within its bounds, and a body follows."""
        room = HEAD_BYTES_MAX - (self._head_bytes - len(data))
        return b"\r\n\r\n" in data[: max(0, room)]

    def on_headers_complete(self) -> None:
        """The head is there."""
        _cancel(self._timer)
        self._timer = None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """The next head is awaited."""
        super().on_response_complete()
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self._await_head()

    def pause_writing(self) -> None:
        """The caller does not read."""
        super().pause_writing()
        self._stuck = self.loop.call_later(STUCK_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        _cancel(self._stuck)

    def _await_head(self) -> None:
        _cancel(self._timer)
        self._head_bytes = 0
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)


class Server(uvicorn.Server):
    """Ends streams before it waits for the rest."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Who listens is told, then everybody is answered."""
        self._streams.close()
        await super().shutdown(sockets)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0: any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except socket.gaierror as error:
        bound.close()
        raise Invalid(f"{host} is no address: {error.strerror}", "Give one as 127.0.0.1.") from None
    except OSError as error:
        bound.close()
        hint = "Another server may have it: give another port, or 0 for any."
        message = f"{host} port {port} cannot be listened at: {error.strerror}"
        raise Refused(message, hint, code="port_taken") from None
    bound.listen(1024)
    bound.setblocking(False)
    return bound


def run(
    app: ASGIApp,
    bound: socket.socket,
    streams: Streams,
    tls: tuple[str, str] | None = None,
    started: Callable[[Server], Any] | None = None,
) -> None:
    """Serve until a signal, or until `should_exit`."""
    _allow_files()
    more = {"ssl_certfile": tls[0], "ssl_keyfile": tls[1]} if tls else {}
    config = uvicorn.Config(
        app,
        http=Connection,
        lifespan="on",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ws_max_size=1024 * 1024,
        **more,  # type: ignore[arg-type]
    )
    server = Server(config, streams)
    if started is not None:
        started(server)
    server.run(sockets=[bound])


def _allow_files() -> None:
    """Every connection is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX * 2
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
