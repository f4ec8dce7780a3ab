"""Attackers: whoever has no business here gets nothing, and the server goes on."""

from __future__ import annotations

import base64
import json
import select
import socket

import pytest

from tests.http.served import Server, everything, first_line, head

STATUS = "/api/v1/status"
SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


@pytest.fixture(autouse=True)
def goes_on(server):
    """Whatever was tried, the next caller is served."""
    yield
    assert server.call("GET", STATUS).status == 200


def test_every_answer_has_the_safe_headers(server: Server):
    for reply in (
        server.call("GET", STATUS),
        server.call("GET", STATUS, token=None),
        server.call("GET", "/nowhere"),
        server.call("GET", "/healthz", token=None),
        server.call("GET", "/metrics"),
    ):
        assert reply.headers.items() >= SAFE.items(), reply
        assert "server" not in reply.headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:{port}", "localhost", "localhost:1", "127.0.0.1:99999",
        "127.0.0.1.evil.example:{port}", "localhost:{port}@evil.example", "", "[::1",
        "0.0.0.0:{port}", "2130706433:{port}", "localhost.:{port}",
    ],
)  # fmt: skip
def test_a_foreign_host_is_refused(server: Server, host: str):
    reply = server.call("GET", STATUS, Host=host.format(port=server.port))
    assert (reply.status, reply.code) == (403, "foreign_host")
    assert server.call("GET", "/healthz", token=None, Host="evil.example").status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}"])
def test_our_own_names_are_welcome(server: Server, host: str):
    assert server.call("GET", STATUS, Host=host.format(port=server.port)).status == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "file://"]
)
def test_a_foreign_origin_is_refused(server: Server, origin: str):
    for method, path in (("GET", STATUS), ("POST", "/api/v1/pause")):
        reply = server.call(method, path, {} if method == "POST" else None, Origin=origin)
        assert (reply.status, reply.code) == (403, "foreign_origin")
    assert server.ask("GET", "/status")["paused"] == []


@pytest.mark.parametrize(
    ("name", "value"), [("Host", "127.0.0.1:{port}"), ("Origin", "http://127.0.0.1:{port}")]
)
def test_what_is_said_twice_is_not_believed(server: Server, name: str, value: str):
    more = f"Origin: http://127.0.0.1:{{port}}\r\n{name}: {value}".format(port=server.port)
    with server.socket() as wire:
        wire.sendall(head(server, "GET", STATUS, more))
        said = wire.recv(65536)
    assert said.startswith(b"HTTP/1.1 403 ")
    assert f"{name} is given twice".encode() in said


def test_our_own_origin_is_welcome(server: Server):
    assert server.call("GET", STATUS, Origin=f"http://127.0.0.1:{server.port}").status == 200
    other_name = server.call("GET", STATUS, Origin=f"http://localhost:{server.port}")
    assert other_name.status == 403, "the same machine by another name is another origin"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_write_nothing(server: Server, site: str):
    reply = server.call("POST", "/api/v1/pause", {}, Sec_Fetch_Site=site)
    assert (reply.status, reply.code) == (403, "foreign_origin")
    reply = server.call("GET", STATUS, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")
    assert reply.status == 403


def test_no_token_and_wrong_ones(server: Server):
    wrong = {
        "none": None,
        "half": server.token[: len(server.token) // 2],
        "longer": server.token + "x",
        "another": "x" * 43,
        "of no lease": "L1.AAAA",
        "odd": "\u00e9",
    }
    for what, token in wrong.items():
        reply = server.call("GET", STATUS, token=token)
        assert (reply.status, reply.code) == (401, "no_token"), what
        assert reply.headers["www-authenticate"] == "Bearer"
        assert server.token not in reply.body.decode()
    basic = base64.b64encode(f"x:{server.token}".encode()).decode()
    assert server.call("GET", STATUS, token=None, Authorization=f"Basic {basic}").status == 401
    for path in ("/metrics", "/api/v1/openapi.json", "/", "/mcp", "/api/v1/nothing"):
        assert server.call("GET", path, token=None).status == 401, path


def test_a_token_in_the_address_is_never_taken(server: Server):
    for query in (f"token={server.token}", f"access_token={server.token}", f"x={server.token}"):
        for token in (None, ""):  # not even beside a good one
            reply = server.call("GET", f"{STATUS}?{query}", token=token)
            assert (reply.status, reply.code) == (401, "no_token"), query


def test_guessing_is_slowed_and_the_owner_is_not(server: Server):
    """Whoever asks with the token is answered before a guess that came earlier."""

    def is_overtaken() -> bool:
        with server.socket() as guess:
            guess.sendall(head(server, "GET", STATUS).replace(server.token.encode(), b"guess" * 8))
            assert server.call("GET", STATUS).status == 200
            overtaken = not select.select([guess], [], [], 0)[0]
            assert b" 401 " in first_line(guess)
        return overtaken

    assert any(is_overtaken() for _ in range(30)), "those beyond the first few wait"


def test_oversized_bodies(server: Server):
    size = 8 * 1024 * 1024 + 1
    reply = server.call("POST", "/api/v1/tasks", b"", Content_Length=str(size))
    assert (reply.status, reply.code) == (413, "too_large")


def test_oversized_bodies_in_chunks(server: Server):
    with server.socket() as wire:
        wire.sendall(head(server, "POST", "/api/v1/tasks", "Transfer-Encoding: chunked"))
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(9):
                wire.sendall(chunk)
        except OSError:
            pass  # it has answered and hung up
        assert b" 413 " in first_line(wire)


def test_heads_without_end(server: Server):
    with server.socket() as wire:
        wire.sendall(b"GET / HTTP/1.1\r\n")
        try:
            for _ in range(100):
                wire.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")
        except OSError:
            pass
        assert b" 400 " in first_line(wire)


@pytest.mark.parametrize(
    "junk",
    [
        b"\x00\x01\x02\x03\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n",
    ],
)  # fmt: skip
def test_junk_has_the_error_document_too(server: Server, junk: bytes):
    with server.socket() as wire:
        wire.sendall(junk)
        wire.shutdown(socket.SHUT_WR)
        said = everything(wire)
    if said:
        assert said.startswith(b"HTTP/1.1 400 ")
        assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"


def test_two_hosts_and_smuggled_lengths(server: Server):
    for more in ("Host: evil.example", "Content-Length: 0\r\nTransfer-Encoding: chunked"):
        with server.socket() as wire:
            wire.sendall(head(server, "GET", STATUS, more))
            status = first_line(wire).split()[1]
            assert status in (b"400", b"403"), more


PATHS = [
    "/../../etc/passwd", "/api/v1/../../../etc/passwd", "/api/v1/tasks/../../token",
    "/api/v1/tasks/%2e%2e%2f%2e%2e%2ftoken", "/api/v1/tasks/..%2ftoken", "/api/v1/tasks/..",
    "/api/v1/tasks/../logs", "/api/v1/tasks/%2e%2e/logs", "/api/v1/tasks/..%5c..%5ctoken/logs",
    "/api/v1/tasks/%252e%252e%252ftoken/logs", "/api/v1/projects/..%2f..%2ftoken",
    "/api/v1/groups/%00", "/api/v1/pools/%2e%2e", "/api/v1/decisions/%2e%2e", "/mcp/../token",
    "/static/../token", "//etc/passwd", "/api/v1//status", "/api/v1/tasks/%ff%fe/logs",
    "/%2e%2e/token", "/token", "/fairlane.db", "/sessions.json", "/server.json",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_no_path_reaches_a_file(server: Server, path: str):
    with server.socket() as wire:
        wire.sendall(head(server, "GET", path, "Connection: close"))
        said = everything(wire)
    assert int(said.split()[1]) in (400, 404, 406, 422), said
    assert server.token.encode() not in said
    assert b"root:" not in said
    assert b"SQLite" not in said
    assert b"Traceback" not in said


def test_no_field_reaches_a_file(server: Server):
    for record in (
        {"id": "../../escape", "prompt": "x"},
        {"id": "a/b", "prompt": "x"},
        {"prompt": "x", "template": "../../token"},
        {"prompt": "x", "workspace": "../../etc"},
        {"prompt": "x", "project": "../web"},
    ):
        reply = server.call("POST", "/api/v1/tasks", {"tasks": [record]})
        assert reply.status in (404, 409, 422), record
        assert server.token not in reply.body.decode()


def test_markup_and_escapes_come_back_as_text(server: Server):
    title = "<script>alert(1)</script>\x1b[31m\x07\u202eevil\u2028"
    server.ask("POST", "/tasks", {"tasks": [{"id": "odd", "prompt": "x", "title": title}]})
    reply = server.call("GET", "/api/v1/tasks/odd")
    assert reply.headers["content-type"] == "application/json"
    assert reply.document["task"]["title"] == title
    assert b"\x1b" not in reply.body, "no control character goes out as it is"
    assert b"\x07" not in reply.body
    server.ask("POST", "/tasks/odd/cancel")


def test_line_breaks_in_a_title_make_no_event(server: Server):
    forged = "x\n\nid: 999999\nevent: forged\ndata: {}\n\n"
    server.ask("POST", "/tasks", {"tasks": [{"id": "forger", "prompt": forged, "title": forged}]})
    server.ask("POST", "/tasks/forger/cancel", {"reason": forged})
    last = server.ask("GET", "/events?limit=1")["cursor"]
    with server.socket() as wire:
        more = "Accept: text/event-stream\r\nLast-Event-ID: 0"
        wire.sendall(head(server, "GET", "/api/v1/events", more))
        said = b""
        while f"id: {last}\n".encode() not in said:
            said += wire.recv(65536)
    assert b"\nevent: forged" not in said
    assert b"\nid: 999999" not in said


def test_the_home_folder_stays_private(server: Server):
    for name in ("token", "server.json"):
        assert (server.home / name).stat().st_mode & 0o077 == 0, name
