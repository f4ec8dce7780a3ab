"""A real `fairlane serve` in a process of its own, and callers that say exactly what they send."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT / "src")}
ENV |= {"USER": "ana"}


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def code(self) -> str:
        """The code of an error document, which must be whole."""
        assert set(self.document) == {"schema", "error"}
        error = self.document["error"]
        assert set(error) == {"code", "message", "hint"}
        return str(error["code"])


class Server:
    """One home folder and whoever serves it."""

    def __init__(self, home: Path, *words: str) -> None:
        self.home, self._words = home, words
        self.port = 0
        self.link = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        port = ["--port", str(self.port)] if self.port else ["--port", "0"]
        words = [sys.executable, "-m", "fairlane", "--home", str(self.home), "--json", "serve"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [*words, *port, *self._words], env=ENV, stdout=pipe, text=True
        )
        assert self._process.stdout is not None
        said = ""
        while not said.endswith("}\n"):
            line = self._process.stdout.readline()
            assert line, f"it said only {said!r}"
            said += line
        self.link = json.loads(said)["link"]
        self.port = int(json.loads(said)["url"].rpartition(":")[2])

    def stop(self) -> int:
        """Its exit code after SIGTERM."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(LIMIT_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    def memory(self) -> int:
        """Bytes that it has in use."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def call(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        token: str | None = "",
        **headers: str,
    ) -> Reply:
        """One request; `token` None: without one. Underscores in names of headers are dashes."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)) as connection:
            connection.putrequest(method, path, skip_host="Host" in sent)
            if body is not None and "Transfer-Encoding" not in sent:
                sent.setdefault("Content-Length", str(len(body)))
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders()
            if body:
                connection.send(body)
            answer = connection.getresponse()
            head = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, head, answer.read())

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """A document of the API."""
        reply = self.call(method, f"/api/v1{path}", body)
        assert reply.status == 200, reply
        return reply.document

    def socket(self) -> socket.socket:
        """A connection to write anything to."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_SECONDS)


@contextmanager
def serving(home: Path, *words: str) -> Iterator[Server]:
    """A server of a home folder, without the page unless words say otherwise."""
    server = Server(home, *(words or ("--no-page",)))
    server.start()
    try:
        yield server
    finally:
        server.stop()


def fairlane(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """One command, to its end."""
    command = [sys.executable, "-m", "fairlane", "--home", str(home), *words]
    return subprocess.run(
        command, env=ENV, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


def head(server: Server, method: str, path: str, more: str = "") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}"]
    lines += [f"Authorization: Bearer {server.token}", *([more] if more else [])]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def first_line(wire: socket.socket) -> bytes:
    said = b""
    while b"\r\n" not in said:
        part = wire.recv(4096)
        assert part, said
        said += part
    return said.partition(b"\r\n")[0]


def everything(wire: socket.socket) -> bytes:
    said = b""
    try:
        while part := wire.recv(65536):
            said += part
    except ConnectionResetError:
        pass
    return said
