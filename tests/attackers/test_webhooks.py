"""Webhooks between hostile or broken receivers: nothing is forged, leaked, followed or held up."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND
from fairlane.notify.send import send, target_name
from fairlane.settings import NotifyRule, Settings
from tests.acceptance.test_docs import blocks
from tests.daemon.world import World
from tests.waiting import LIMIT_SECONDS, until

NOW = 1_769_774_400 * SECOND
EVENT = {"number": 7, "event": "parked"}


@dataclass
class Receiver:
    """A receiver that keeps what it got and answers as it is told."""

    port: int = 0
    answer: Callable[[Receiver, BaseHTTPRequestHandler], int] = lambda receiver, request: 200
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/B0/path-token?key=query-token"

    @property
    def numbers(self) -> list[int]:
        return [json.loads(body)["number"] for _, _, body in self.got]


@contextmanager
def receiving(
    answer: Callable[[Receiver, BaseHTTPRequestHandler], int] = lambda receiver, request: 200,
) -> Iterator[Receiver]:
    receiver = Receiver(answer=answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append((self.path, dict(self.headers), body))
            self.send_response(receiver.answer(receiver, self))
            self.end_headers()

        def do_GET(self) -> None:
            receiver.got.append((self.path, dict(self.headers), b""))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def saying(*parts: bytes) -> Iterator[NotifyRule]:
    """A receiver that says this to the first caller, the last part without end."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def talk() -> None:
            with closing(server.accept()[0]) as caller:
                try:
                    caller.recv(65536)
                    for part in parts:
                        caller.sendall(part)
                    while parts:
                        caller.sendall(parts[-1])
                except OSError:
                    return  # the caller hung up

        thread = threading.Thread(target=talk)
        thread.start()
        yield NotifyRule(url=f"http://127.0.0.1:{server.getsockname()[1]}/path-token")
        thread.join()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("file:///etc/passwd", "neither http nor https"),
        ("ftp://host/secret", "neither http nor https"),
        ("gopher://host/secret", "neither http nor https"),
        ("HTTPS:secret", "not a URL"),
        ("https:///secret", "not a URL"),
        ("https://host:port/secret", "not a URL"),
        ("https://[::1/secret", "not a URL"),
        ("https://host/se cret", "not a URL"),
        ("https://höst/secret", "not a URL"),
        ("https://host/secret\r\nX: y", "not a line of text"),
        (["secret"], "not a line of text"),
    ],
)
def test_settings_refuse_any_other_address_and_do_not_show_it(url: object, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        Settings.parse({"notify": [{"url": url}]})
    assert refused.value.message == f"fairlane.toml: notify[0].url: {why}"
    assert "secret" not in f"{refused.value.message} {refused.value.hint}"


def test_no_secret_is_shown() -> None:
    url = "https://user:pass@hooks.example.com:8443/services/T0/token?key=query#part"
    rule = Settings.parse({"notify": [{"url": url, "secret": "s3cret"}]}).notify[0]
    assert target_name(rule) == "https://hooks.example.com:8443/…"
    for secret in ("user", "pass", "token", "query", "s3cret"):
        assert secret not in repr(rule)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with receiving() as other:

        def redirect(receiver: Receiver, request: BaseHTTPRequestHandler) -> int:
            request.send_response_only(status)
            request.send_header("Location", other.url)
            return status

        with receiving(redirect) as receiver:
            sent = send(NotifyRule(url=receiver.url, secret="s3cret"), EVENT, NOW)
    assert sent == (f"it answered {status}, and redirects are not followed", False)
    assert len(receiver.got) == 1
    assert other.got == []


def documented() -> dict[str, Any]:
    """What the program in the documentation defines."""
    space: dict[str, Any] = {"print": lambda *words: None}
    program = next(
        text for language, text in blocks("docs/notifications.md") if language == "python"
    )
    exec(compile(program, "docs/notifications.md", "exec"), space)
    return space


def test_the_documented_receiver_knows_genuine_events_and_no_others() -> None:
    with receiving() as receiver:
        assert send(NotifyRule(url=receiver.url, secret="s3cret"), EVENT, NOW) == ("", False)
    path, headers, body = receiver.got[0]
    assert path == "/services/T0/B0/path-token?key=query-token"
    assert json.loads(body) == EVENT
    assert headers["X-Fairlane-Event"] == "7"
    now, timestamp = NOW // SECOND, headers["X-Fairlane-Timestamp"]
    is_genuine, signed = documented()["is_genuine"], headers["X-Fairlane-Signature"]
    assert is_genuine("s3cret", timestamp, signed, body, now)
    assert not is_genuine("other", timestamp, signed, body, now)
    assert not is_genuine("s3cret", timestamp, signed, body + b" ", now)
    assert not is_genuine("s3cret", str(now + 60), signed, body, now + 60)  # a newer timestamp
    assert not is_genuine("s3cret", timestamp, signed, body, now + 3600)  # replayed
    assert not is_genuine("s3cret", timestamp, "sha256=ö", body, now)


def test_without_a_secret_nothing_is_signed_and_a_password_is_a_header() -> None:
    with receiving() as receiver:
        url = receiver.url.replace("//", "//user:p%40ss@")
        assert send(NotifyRule(url=url), EVENT, NOW) == ("", False)
    _, headers, _ = receiver.got[0]
    assert "X-Fairlane-Signature" not in headers
    assert headers["Authorization"] == "Basic dXNlcjpwQHNz"
    assert headers["Host"] == f"127.0.0.1:{receiver.port}"


@pytest.mark.parametrize(
    ("parts", "sent"),
    [
        ((b"HTTP/1.1 200 OK\r\nA: ", b"x" * 9000), ("its answer is not HTTP", True)),
        ((b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"), ("its answer is not HTTP", True)),
        ((b"HTTP/1.1 100 Continue\r\n\r\n",), ("no answer within 0.5 s", True)),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), ("its answer is not HTTP", True)),
        ((b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 9000), ("", False)),  # the body is not read
    ],
    ids=["one endless header", "endless headers", "never comes to the point", "other", "endless"],
)
def test_an_endless_answer_is_bounded(parts: tuple[bytes, ...], sent: tuple[str, bool]) -> None:
    seconds = 0.5 if "within" in sent[0] else LIMIT_SECONDS
    with saying(*parts) as rule:
        assert send(rule, EVENT, NOW, seconds) == sent


def test_silence_and_a_closed_port_are_retried() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        rule = NotifyRule(url=f"http://127.0.0.1:{silent.getsockname()[1]}/path-token")
        assert send(rule, EVENT, NOW, 0.5) == ("no answer within 0.5 s", True)
    assert send(rule, EVENT, NOW) == ("Connection refused", True)


def test_a_proxy_is_used_for_plain_and_for_secure_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiving() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{proxy.port}")
        rule = NotifyRule(url="http://hooks.invalid:81/token")
        assert send(rule, EVENT, NOW) == ("", False)
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        refused = send(NotifyRule(url="https://hooks.invalid/token"), EVENT, NOW)
    assert proxy.got[0][0] == "http://hooks.invalid:81/token"
    assert proxy.got[0][1]["Proxy-Authorization"] == "Basic bWU6cHc="
    assert refused == ("Tunnel connection failed: 501 Unsupported method ('CONNECT')", True)


@pytest.mark.slow
def test_a_slow_target_delays_no_other_and_a_failing_one_is_retried(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    world.policy("retry.max_attempts = 1\n")

    def once_the_other_has_all(receiver: Receiver, request: BaseHTTPRequestHandler) -> int:
        until(lambda: len(quick.got) == 2)
        return 200

    def fails_first(receiver: Receiver, request: BaseHTTPRequestHandler) -> int:
        return 503 if len(receiver.got) == 1 else 200

    with (
        receiving(once_the_other_has_all) as slow,
        receiving() as quick,
        receiving(fails_first) as broken,
        receiving(lambda receiver, request: 404) as wrong,
    ):
        targets = [slow, quick, broken, wrong]
        rules = [f"[[notify]]\nurl = '{each.url}'\nsecret = 's3cret'\n" for each in targets]
        world.settings("".join(rules))
        world.add({"id": "a", "command": ["false"]})
        done = subprocess.run(
            [sys.executable, "-m", "fairlane", "--home", str(world.home), "run", "--until-idle"],
            capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS,
        )  # fmt: skip
    first, second = quick.numbers
    assert slow.numbers == [first, second]
    assert broken.numbers == [first, first, second]
    assert wrong.numbers == [first, second]
    said = done.stdout + done.stderr
    for at, problem in ((2, "503; it is retried"), (3, "404")):
        name = f"notify[{at}] (http://127.0.0.1:{targets[at].port}/…)"
        assert f"{name}: parked (event {first}) was not sent" in said
        assert f"it answered {problem}" in said
    assert f"notify[2] (http://127.0.0.1:{broken.port}/…): sends again" in said
    assert "token" not in said
    assert "s3cret" not in said
