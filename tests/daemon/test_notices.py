"""Who wants to know is told: by a command, and by a signed webhook."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fairlane.notify.send import send, signature
from fairlane.settings import NotifyRule
from tests.daemon.world import World

pytestmark = pytest.mark.slow


def told_by(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_command_is_told_of_what_was_parked_a_finished_group_and_an_empty_queue(
    world: World,
) -> None:
    told = world.home / "told"
    script = f'cat >> "{told}"; echo >> "{told}"'
    world.settings(f"[[notify]]\ncommand = ['sh', '-c', '{script}']\n")
    world.policy("retry.max_attempts = 1\n")
    world.add({"id": "a", "command": ["false"]}, {"id": "b", "command": ["true"], "group": "g"})
    world.run()
    found = told_by(told)
    assert {each["event"] for each in found} == {"parked", "group_done", "queue_empty"}
    parked = next(each for each in found if each["event"] == "parked")
    assert parked["task"] == "a"
    world.add({"id": "c", "command": ["true"]})
    world.run()
    numbers = [each["number"] for each in told_by(told)]
    assert len(numbers) == len(set(numbers))  # none came twice


def test_a_webhook_is_signed_and_tried_again() -> None:
    seen: list[tuple[bytes, str | None]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((body, self.headers.get("X-Fairlane-Signature")))
            self.send_response(503 if len(seen) == 1 else 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Listener)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        rule = NotifyRule(url=f"http://127.0.0.1:{server.server_port}/", secret="s3cret")
        assert send(rule, {"number": 7, "event": "parked"}) == ""
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    body, signed = seen[1]
    assert len(seen) == 2
    assert signed == signature("s3cret", body)
    assert json.loads(body)["number"] == 7


def test_what_cannot_be_told_is_said() -> None:
    assert "no-such-program" in send(NotifyRule(command=("no-such-program",)), {"number": 1})
    assert send(NotifyRule(command=("false",)), {"number": 1}) == "false: exit 1"
