"""The real `gh` against a GitHub on loopback: by host, with the fields that this `gh` knows."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fairlane.intake.sources import github
from fairlane.intake.sources.base import Where
from fairlane.model.errors import TryLater

pytestmark = pytest.mark.slow

HASH = chr(35)
FIELDS = ("issueType", "parent", "subIssues", "blockedBy", "stateReason", "hasIssuesEnabled")


def node(number: int, title: str, body: str = "", **more: Any) -> dict[str, Any]:
    """An issue as the API has it; also what only a newer `gh` asks for."""
    none: dict[str, Any] = {"nodes": [], "totalCount": 0, "pageInfo": {"hasNextPage": False}}
    return {
        "number": number, "title": title, "body": body, "state": "OPEN", "stateReason": None,
        "url": f"https://localhost/acme/shop/issues/{number}", "labels": none, "assignees": none,
        "createdAt": "2026-01-30T12:00:00Z", "updatedAt": "2026-01-30T12:00:00Z",
        "milestone": None, "issueType": None, "parent": None, "subIssues": none,
        "blockedBy": none, "id": f"I_{number}", **more,
    }  # fmt: skip


ISSUES = [
    node(12, "Fix the form", milestone={"number": 1, "title": "Spring", "description": ""}),
    node(13, "Look it over", f"Blocked by {HASH}12, {HASH}3, acme/api{HASH}7, acme/api{HASH}8"),
]


def answer(query: str, variables: dict[str, Any]) -> dict[str, Any]:
    """What GitHub says to one query."""
    if "__type(" in query:
        return {"Issue": {"fields": [{"name": name} for name in FIELDS]}}
    if "issueOrPullRequest" in query:
        state = "CLOSED" if variables["number"] == 7 else "OPEN"
        issue = {"__typename": "Issue", "state": state, "id": "I"}
        return {"repository": {"hasIssuesEnabled": True, "issue": issue}}
    listed = {"totalCount": 2, "nodes": ISSUES, "pageInfo": {"hasNextPage": False}}
    return {"repository": {"hasIssuesEnabled": True, "issues": listed}}


class GitHub(BaseHTTPRequestHandler):
    """Answers GraphQL."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = answer(asked["query"], asked.get("variables") or {})
        text = json.dumps({"data": data})
        body = text.replace("https://localhost/", f"https://{self.headers['Host']}/").encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Quiet."""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A GitHub of its own that `gh` trusts, and is logged in to."""
    if shutil.which("gh") is None or shutil.which("openssl") is None:
        pytest.skip("gh or openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        ["openssl", *words.split(), *names.split(), *files], check=True, capture_output=True
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    for name in ("GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "GH_ENTERPRISE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "localhost")
    monkeypatch.setenv("GH_CONFIG_DIR", str(tmp_path / "gh"))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    yield f"localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_issues_by_host_owner_and_name(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = Where(Path(f"{host}/acme/shop"))
    with pytest.raises(TryLater, match="gh is not logged in"):
        github.read(where)
    monkeypatch.setenv("GH_ENTERPRISE_TOKEN", "x")
    first, second = github.read(where).items
    assert (first.id, first.record["id"], first.group) == ("12", "shop-12", "milestone:Spring")
    assert second.needs == ("12",)
    assert second.blocked == f"blocked by acme/api{HASH}8"  # the other is closed
