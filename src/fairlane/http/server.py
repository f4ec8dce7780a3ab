"""The server: sockets, connections with limits, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlane.http.identity import NOBODY, Who
from fairlane.http.messages import to_json
from fairlane.http.streams import Streams
from fairlane.model.errors import FairlaneError, Invalid, Refused

#: Most connections, and most requests that are answered at once.
CONNECTIONS_MAX = 2_000
#: Limits of a request's head.
HEAD_SECONDS, HEAD_BYTES_MAX = 30.0, 64 * 1024
#: Timeout of a request's body.
BODY_SECONDS = 30.0
#: How soon the thread that writes and the one that answers give way to each other.
SWITCH_SECONDS = 0.0005
#: How often to look for slow clients, in tenths of a second.
LOOK_TICKS = 10
#: Keep-alive timeout.
IDLE_SECONDS = 20
#: Timeout of a client that does not read.
STUCK_SECONDS = 30.0
#: How long running requests may take at shutdown.
GRACE_SECONDS = 5


class _Joined:
    """A transport that sends what is written in one turn of the loop in one go.

    A response is a head and a body; sent one by one they wake the caller twice.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Held until the turn is over."""
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)

    def close(self) -> None:
        """Everything is sent first."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._held:
            self._transport.write(b"".join(self._held))
            self._held.clear()


class Connection(HttpToolsProtocol):
    """A connection whose caller may be neither slow nor endless."""

    _due = 0.0  # when what is awaited must be there; 0: nothing is
    _in_head = True
    _head_bytes = 0
    _stuck: asyncio.TimerHandle | None = None
    _proven = False  # whether a request on it showed the owner's token or the page's cookie

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The head of the first request is awaited."""
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type]
        if len(self.connections) > CONNECTIONS_MAX and not self._make_room():
            transport.abort()
            return
        self._await_head()

    def _make_room(self) -> bool:
        """Close the connection of a stranger that has been silent longest; False: all are busy."""
        others = [
            other
            for other in self.connections
            if isinstance(other, Connection) and other is not self and other._is_idle_stranger()
        ]
        if not others:
            return False
        min(others, key=lambda other: other._due).transport.abort()
        return True

    def _is_idle_stranger(self) -> bool:
        return self._in_head and not self._proven and not self.transport.is_closing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._due = 0.0
        if self._stuck is not None:
            self._stuck.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head; the guard counts those of a body."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX and not self._ends_in(data):
                self.send_400_response("The head is too large.")
                return
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP has the error document too."""
        self._refuse("400 Bad Request", FairlaneError(msg, "Send HTTP/1.1.", "bad_request"))

    def look(self, now: float) -> None:
        """Close the connection of a client that is too slow."""
        if not self._due or now < self._due:
            return
        self._due = 0.0
        if self._in_head or self.cycle is None or self.cycle.response_started:
            self.transport.abort()
            return
        hint = f"A body has {BODY_SECONDS:.0f} seconds."
        error = FairlaneError("the body did not come", hint, "too_slow")
        self._refuse("408 Request Timeout", error)

    def _refuse(self, status: str, error: FairlaneError) -> None:
        body = to_json(error.document()).encode("utf-8", "replace")
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _ends_in(self, data: bytes) -> bool:
        """Whether the head is over within its bounds, and a body follows."""
        room = HEAD_BYTES_MAX - (self._head_bytes - len(data))
        return b"\r\n\r\n" in data[: max(0, room)]

    def on_headers_complete(self) -> None:
        """The head is there; a body may follow."""
        self._in_head, self._due = False, self.loop.time() + BODY_SECONDS
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of it is there."""
        self._due = 0.0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The next head is awaited."""
        who = self.scope.get("fairlane.who")
        if isinstance(who, Who) and who is not NOBODY and who.lease is None:
            self._proven = True
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
        if self._stuck is not None:
            self._stuck.cancel()

    def _await_head(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._due = self.loop.time() + HEAD_SECONDS


class Server(uvicorn.Server):
    """Ends streams before it waits for the rest."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def on_tick(self, counter: int) -> bool:
        """Look for slow clients now and then: cheaper than a timer for each."""
        if counter % LOOK_TICKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.look(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then finish the requests."""
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
    started: Callable[[Server], object] | None = None,
) -> None:
    """Serve until a signal, or until `should_exit`."""
    _allow_files()
    sys.setswitchinterval(SWITCH_SECONDS)
    more = {"ssl_certfile": tls[0], "ssl_keyfile": tls[1]} if tls else {}
    config = uvicorn.Config(
        app,
        http=Connection,
        lifespan="on",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=2 * CONNECTIONS_MAX,  # those that are being closed count too
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
