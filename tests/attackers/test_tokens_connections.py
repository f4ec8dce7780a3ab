"""Strangers that hold connections open do not shut out callers with a good token."""

from __future__ import annotations

import resource
import socket
from contextlib import ExitStack

import pytest

pytest.importorskip("uvicorn")
from tests.http.served import Server, first_line, head, serving
from tests.waiting import until

#: More than the server keeps.
CROWD = 2_100
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _files():
    """Room for the crowd in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * CROWD)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found


def crowd(server: Server, stack: ExitStack, sent: bytes = b"") -> list[socket.socket]:
    """Connections that say nothing, or too little."""
    found = [stack.enter_context(server.socket()) for _ in range(CROWD)]
    for wire in found:
        try:
            wire.sendall(sent)
        except (BrokenPipeError, ConnectionResetError):
            continue  # closed already: what the server should do
    return found


@pytest.mark.parametrize("sent", [b"", b"GET /api/v1/status HTTP/1.1\r\nHost: x"])
def test_a_crowd_of_strangers_makes_room(server: Server, sent: bytes):
    with ExitStack() as stack:
        kept = stack.enter_context(server.socket())
        kept.sendall(head(server, "GET", "/api/v1/status"))
        assert first_line(kept) == b"HTTP/1.1 200 OK"
        crowd(server, stack, sent)
        for _ in range(20):
            assert server.call("GET", "/api/v1/status").status == 200
        kept.sendall(head(server, "GET", "/api/v1/status"))
        until(lambda: b"HTTP/1.1 200 OK" in kept.recv(65536))


def served(server: Server) -> bool:
    """Whether the owner gets an answer; a connection may be refused while all others are busy."""
    try:
        return bool(server.call("GET", "/api/v1/status").status == 200)
    except ConnectionError:
        return False


def test_an_attempt_cannot_hold_them_all(server: Server):
    server.ask("POST", "/tasks", {"tasks": [{"id": "own", "prompt": "x"}]})
    lease = server.ask("POST", "/leases", {"limit": 1, "worker": "box1"})["leases"][0]["lease"]
    badge = server.ask("POST", f"/leases/{lease}/token")["token"]
    asked = head(server, "GET", "/api/v1/tasks/own").replace(server.token.encode(), badge.encode())
    with ExitStack() as stack:
        crowd(server, stack, asked)
        until(lambda: served(server))  # as soon as the server has answered some of the crowd
