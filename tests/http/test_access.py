"""Who may do what: the owner's token, an attempt's token, and the page's cookie."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from http.client import HTTPSConnection
from http.cookies import SimpleCookie
from typing import Any

import pytest

from fairlane.http.guard import who_shows
from fairlane.http.identity import Secrets
from fairlane.service.home.setup import attempt_key, lease_token
from tests.http.served import ENV, Reply, Server, fairlane, serving


@pytest.fixture(scope="module")
def lease(server: Server) -> str:
    """A lease of task `own`, which `box1` holds."""
    server.ask("POST", "/tasks", {"tasks": [{"id": "own", "prompt": "x"}]})
    found = server.ask("POST", "/leases", {"limit": 1, "worker": "box1"})["leases"]
    return str(found[0]["lease"])


@pytest.fixture(scope="module")
def badge(server: Server, lease: str) -> str:
    """Its token."""
    told = server.ask("POST", f"/leases/{lease}/token")
    assert told["lease"] == lease
    return str(told["token"])


def test_the_token_of_an_attempt_acts_for_it(server: Server, lease: str, badge: str):
    def ask(method: str, path: str, body: dict[str, object] | None = None) -> Reply:
        return server.call(method, f"/api/v1{path}", body, token=badge)

    assert ask("POST", f"/leases/{lease}/heartbeat").document["status"] == "running"
    assert ask("POST", f"/leases/{lease}/report", {"note": "half"}).status == 200
    assert ask("GET", "/tasks/own").document["task"]["status"] == "running"
    assert ask("GET", "/tasks/own/why").status == 200
    assert ask("GET", "/tasks/own/logs").status == 200
    assert ask("GET", "/tasks/own/transcript").document["task"] == "own"
    added = ask("POST", "/tasks", {"tasks": [{"id": "child", "prompt": "y", "parent": "other"}]})
    assert added.document["tasks"][0]["created"] is True
    child = server.ask("GET", "/tasks/child")
    assert child["task"]["parent"] == "own", "whatever it says, it is a child of its own task"
    assert child["events"][0]["data"]["by"] == f"lease:{lease}"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/status", None),
        ("GET", "/api/v1/tasks", None),
        ("GET", "/api/v1/tasks/other", None),
        ("GET", "/api/v1/tasks/other/logs", None),
        ("GET", "/api/v1/tasks/other/transcript", None),
        ("GET", "/api/v1/events", None),
        ("POST", "/api/v1/leases", {"limit": 1}),
        ("POST", "/api/v1/leases/L999/complete", {}),
        ("POST", "/api/v1/tasks", {"tasks": [{"id": "own"}], "again": True}),
        ("POST", "/api/v1/tasks", {"tasks": [{"id": "x"}], "force": True}),
        ("PATCH", "/api/v1/tasks/own", {"priority": 1}),
        ("POST", "/api/v1/tasks/own/cancel", {}),
        ("PATCH", "/api/v1/policy", {"caps.all": 99}),
        ("POST", "/api/v1/pause", {}),
        ("POST", "/api/v1/links", {}),
        ("GET", "/metrics", None),
        ("GET", "/", None),
        ("GET", "/mcpx", None),
    ],
)
def test_the_token_of_an_attempt_can_do_nothing_else(
    server: Server, badge: str, method: str, path: str, body: dict[str, object] | None
):
    reply = server.call(method, path, body, token=badge)
    assert (reply.status, reply.code) == (403, "forbidden")


def test_an_attempt_cannot_give_tokens_nor_stream(server: Server, lease: str, badge: str):
    assert server.call("POST", f"/api/v1/leases/{lease}/token", token=badge).status == 403
    reply = server.call("GET", "/api/v1/events", token=badge, Accept="text/event-stream")
    assert reply.status == 403


def test_after_its_end_it_adds_nothing(server: Server, lease: str, badge: str):
    done = server.call("POST", f"/api/v1/leases/{lease}/complete", {"tokens": 7}, token=badge)
    assert done.document["status"] == "done"
    again = server.call("POST", f"/api/v1/leases/{lease}/complete", {}, token=badge)
    assert again.document["code"] == "already_done"
    late = server.call("POST", "/api/v1/tasks", {"tasks": [{"prompt": "z"}]}, token=badge)
    assert (late.status, late.code) == (403, "lease_ended")
    for path in ("/tasks/own", "/tasks/own/why", "/tasks/own/logs", "/tasks/own/transcript"):
        late = server.call("GET", f"/api/v1{path}", token=badge)
        assert (late.status, late.code) == (403, "lease_ended"), path
    reply = server.call("POST", f"/api/v1/leases/{lease}/token")
    assert (reply.status, reply.code) == (409, "lease_ended")


def test_a_token_of_another_home_or_lease_is_nobody(server: Server, lease: str):
    other = lease_token("x" * 43, lease)
    assert server.call("GET", "/api/v1/tasks/own", token=other).status == 401
    by_owner = lease_token(server.token, lease)
    assert server.call("GET", "/api/v1/tasks/own", token=by_owner).status == 401
    own = lease_token(attempt_key(server.home), lease)
    assert server.call("GET", "/api/v1/tasks/own", token=own).status != 401
    swapped = "L999." + own.rpartition(".")[2]
    assert server.call("GET", "/api/v1/tasks/own", token=swapped).status == 401
    assert who_shows(Secrets("y" * 43, "x" * 43), other).lease == lease


def cookie_from(reply: Reply) -> str:
    """What a browser would send back."""
    (morsel,) = SimpleCookie(reply.headers["set-cookie"]).values()
    assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "Lax", "/")
    return f"{morsel.key}={morsel.value}"


def opened(server: Server, path: str) -> str:
    reply = server.call("GET", path, token=None)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    return cookie_from(reply)


def test_a_link_opens_once(server: Server):
    path = server.ask("POST", "/links")["path"]
    assert server.call("HEAD", path, token=None).status == 204, "looking uses nothing up"
    cookie = opened(server, path)
    assert server.call("GET", "/api/v1/status", token=None, Cookie=cookie).status == 200
    again = server.call("GET", path, token=None)
    assert (again.status, again.code) == (401, "used_link")
    clicked_twice = server.call("GET", path, token=None, Cookie=cookie)
    assert (clicked_twice.status, clicked_twice.headers["location"]) == (303, "/")
    assert "set-cookie" not in clicked_twice.headers
    for wrong in ("/open", "/open?key=", "/open?key=guess"):
        assert server.call("GET", wrong, token=None).status == 401
    assert server.call("GET", "/api/v1/status", token=None, Cookie=cookie + "x").status == 401


def test_people_are_told_what_opens_the_page(server: Server):
    for path in ("/", "/open?key=used"):
        reply = server.call("GET", path, token=None, Accept="text/html,*/*")
        assert reply.status == 401
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
        assert b"<code>fairlane link</code>" in reply.body


def test_a_cookie_writes_only_for_our_own_page(server: Server):
    cookie = opened(server, server.ask("POST", "/links")["path"])
    ours = f"http://127.0.0.1:{server.port}"
    refused = server.call("POST", "/api/v1/resume", {}, token=None, Cookie=cookie)
    assert (refused.status, refused.code) == (403, "foreign_origin")
    for headers in ({"Origin": ours}, {"Sec_Fetch_Site": "same-origin"}):
        reply = server.call("POST", "/api/v1/resume", {}, token=None, Cookie=cookie, **headers)
        assert reply.status == 200
    for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "same-site"}):
        reply = server.call("POST", "/api/v1/resume", {}, token=None, Cookie=cookie, **headers)
        assert reply.status == 403
    left = server.call("POST", "/logout", token=None, Cookie=cookie, Origin=ours)
    assert left.status == 303
    assert server.call("GET", "/api/v1/status", token=None, Cookie=cookie).status == 401


def test_sockets_are_looked_at_too(server: Server):
    cookie = opened(server, server.ask("POST", "/links")["path"])
    upgrade: dict[str, Any] = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    tried: tuple[dict[str, Any], ...] = (
        {},
        {"Cookie": cookie},
        {"Cookie": cookie, "Origin": "http://evil.example"},
        {"Host": f"evil.example:{server.port}", "Cookie": cookie},
    )
    for more in tried:
        reply = server.call("GET", "/socket", token=None, **upgrade, **more)
        assert reply.status == 403, more


@pytest.mark.slow
def test_a_restart_logs_nobody_out(tmp_path):
    with serving(tmp_path) as server:
        cookie = opened(server, server.ask("POST", "/links")["path"])
        assert (tmp_path / "sessions.json").stat().st_mode & 0o077 == 0
        kept = (tmp_path / "sessions.json").read_text()
        assert cookie.partition("=")[2] not in kept, "only digests are kept"
        link = server.ask("POST", "/links")["path"]
        assert server.stop() == 143
        server.start()
        assert server.call("GET", "/api/v1/status", token=None, Cookie=cookie).status == 200
        assert server.call("GET", link, token=None).status == 401, "a link is not kept"
        assert fairlane(tmp_path, "link").stdout.startswith(f"http://127.0.0.1:{server.port}/open?")
    gone = fairlane(tmp_path, "link")
    assert gone.returncode == 75
    assert "nobody serves this home folder" in gone.stderr


@pytest.mark.slow
def test_a_new_token_of_the_owner_leaves_running_agents_alone(tmp_path):
    with serving(tmp_path) as server:
        server.ask("POST", "/tasks", {"tasks": [{"id": "own", "prompt": "x"}]})
        lease = server.ask("POST", "/leases", {"limit": 1, "worker": "box1"})["leases"][0]["lease"]
        badge = server.ask("POST", f"/leases/{lease}/token")["token"]
        assert (tmp_path / "attempts.key").stat().st_mode & 0o077 == 0
        old = server.token
        server.stop()
        (tmp_path / "token").unlink()
        server.start()
        assert server.token != old
        assert server.call("GET", "/api/v1/status", token=old).status == 401
        beat = server.call("POST", f"/api/v1/leases/{lease}/heartbeat", token=badge)
        assert beat.document["status"] == "running"


@pytest.mark.slow
def test_plain_http_off_loopback_must_be_asked_for(tmp_path):
    refused = fairlane(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "0.0.0.0 is not loopback, and plain HTTP shows the token" in refused.stderr
    assert not (tmp_path / "server.json").exists()
    with serving(tmp_path, "--no-page", "--host", "0.0.0.0", "--allow-plain-http") as server:
        for host, status in (("127.0.0.1", 200), ("evil.example", 403), ("0.0.0.0", 403)):
            reply = server.call("GET", "/api/v1/status", Host=f"{host}:{server.port}")
            assert reply.status == status, host


def test_other_names_are_welcome_where_they_were_given(tmp_path):
    words = ("--no-page", "--name", "queue.example", "--name", "queue.example:8443")
    with serving(tmp_path, *words) as server:
        for host in (f"queue.example:{server.port}", "queue.example:8443"):
            assert server.call("GET", "/api/v1/status", Host=host).status == 200, host
        assert server.call("GET", "/api/v1/status", Host="queue.example").status == 403


def test_a_port_that_is_taken_is_named(server: Server, tmp_path):
    refused = fairlane(tmp_path, "--json", "serve", "--port", str(server.port))
    assert refused.returncode == 1
    error = json.loads(refused.stdout)["error"]
    assert error["code"] == "port_taken"
    assert f"127.0.0.1 port {server.port} cannot be listened at" in error["message"]


def test_a_token_that_others_can_read_serves_nothing(tmp_path):
    (tmp_path / "token").write_text("x" * 43)
    (tmp_path / "token").chmod(0o644)
    refused = fairlane(tmp_path, "serve", "--port", "0")
    assert refused.returncode == 1
    assert "others can read this token" in refused.stderr


@pytest.mark.slow
def test_https_needs_no_permission(tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here to make a certificate with")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([openssl, *words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    half = fairlane(tmp_path, "serve", "--tls-cert", str(cert))
    assert (half.returncode, "--tls-key go together" in half.stderr) == (2, True)
    tls = ("--tls-cert", str(cert), "--tls-key", str(key))
    with serving(tmp_path / "home", "--no-page", "--host", "0.0.0.0", *tls) as server:
        trusting = ssl.create_default_context(cafile=str(cert))
        wire = HTTPSConnection("127.0.0.1", server.port, context=trusting)
        wire.request("GET", server.link.partition(str(server.port))[2])
        assert "; Secure" in (wire.getresponse().headers["set-cookie"] or "")
        wire.close()


@pytest.mark.slow
def test_without_the_extra_it_is_said(tmp_path, monkeypatch):
    hidden = "import sys\nsys.modules['uvicorn'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    monkeypatch.setitem(ENV, "PYTHONPATH", f"{tmp_path}:{ENV['PYTHONPATH']}")
    home = tmp_path / "home"
    refused = fairlane(home, "serve")
    assert refused.returncode == 2
    assert "the server is not installed" in refused.stderr
    assert "-m pip install 'starlette" in refused.stderr
    try:
        up = fairlane(home, "up", "--detach")
        assert (up.returncode, "no API and no dashboard. Install" in up.stderr) == (0, True)
        assert "no API and no dashboard. Install" in (home / "daemon.log").read_text()
    finally:
        assert fairlane(home, "down").returncode == 0
