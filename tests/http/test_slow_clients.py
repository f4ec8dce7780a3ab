"""Slow clients: whoever does not go on within half a minute is let go; the others are served."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from pathlib import Path

import pytest

from tests.http.served import Server, head
from tests.waiting import until

pytestmark = pytest.mark.slow


def test_slow_clients_are_let_go(server: Server):
    """One that sends no head, half a head, a body in drops, and one that never reads; a quiet
    listener stays."""
    silent, halting, dripping, deaf, patient = (server.socket() for _ in range(5))
    patient.sendall(head(server, "GET", "/api/v1/events", "Accept: text/event-stream"))
    halting.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: x")
    dripping.sendall(head(server, "POST", "/api/v1/tasks", "Content-Length: 100") + b"{")
    never_read(server, deaf)
    assert server.call("GET", "/api/v1/status").status == 200

    def answered() -> bool:
        if select.select([dripping], [], [], 2.0)[0]:
            return True
        dripping.sendall(b" ")  # a byte now and then does not buy more time
        return False

    until(answered)
    assert dripping.recv(4096).startswith(b"HTTP/1.1 408 ")
    for wire in (silent, halting):
        assert until_gone(wire) == b""
    alive = patient.recv(65536).count(b": alive\n\n")
    assert alive >= 1, "a quiet stream shows that it lives, and nobody is let go before that"
    patient.close()
    until(lambda: not connections(server))  # who does not read is let go too
    for wire in (silent, halting, dripping, deaf):
        wire.close()
    assert server.call("GET", "/api/v1/status").status == 200


def test_who_hung_up_waits_for_no_lease(server: Server):
    call = {"name": "lease", "arguments": {"limit": 1, "worker": "gone", "wait": "60s"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    body = json.dumps(asked)
    more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    more += "Accept: application/json, text/event-stream"
    with server.socket() as wire:
        wire.sendall(head(server, "POST", "/mcp", more) + body.encode())
        until(lambda: b'"gone"' in server.call("GET", "/api/v1/workers").body)
    # Its call has ended, long before its wait is over.
    until(lambda: b'route="/mcp"' in server.call("GET", "/metrics").body, 45)
    server.ask("POST", "/tasks", {"tasks": [{"id": "for-others", "prompt": "x"}]})
    (lease,) = server.ask("POST", "/leases", {"limit": 1, "worker": "here"})["leases"]
    assert lease["task"] == "for-others"


def never_read(server: Server, wire: socket.socket) -> None:
    """Ask for much, and take nothing."""
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(200):
            wire.send(head(server, "GET", "/api/v1/openapi.json"))


def until_gone(wire: socket.socket) -> bytes:
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while part := wire.recv(4096):
            said += part
    return said


def connections(server: Server) -> int:
    """Sockets of the server that are connected to somebody."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    parts = [line.split() for line in lines]
    return sum(each[1].endswith(f":{server.port:04X}") and each[3] == "01" for each in parts)
