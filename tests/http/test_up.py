"""`fairlane up` serves: beside the daemon, started again if it dies, gone when the daemon is."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.http.served import fairlane
from tests.waiting import LIMIT_SECONDS, until

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path) -> Iterator[Path]:
    yield tmp_path
    fairlane(tmp_path, "down", "--stop-agents")


def served(home: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((home / "server.json").read_text())
    except FileNotFoundError:
        return None
    return found if lives(found["pid"]) else None


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def ready(url: str) -> bool:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=LIMIT_SECONDS)
    connection.request("GET", "/readyz")
    status = connection.getresponse().status
    connection.close()
    return status == 200


def up(home: Path) -> dict[str, Any]:
    said = fairlane(home, "--json", "up", "--detach", "--port", "0", "--no-page")
    assert said.returncode == 0, said
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def test_up_and_down(home: Path):
    told = up(home)
    assert ready(told["url"])
    server = served(home)
    assert server
    assert (server["url"], server["daemon"]) == (told["url"], told["pid"])
    assert fairlane(home, "add", "--agent", "shell", "--", "true").returncode == 0
    until(lambda: '"done"' in fairlane(home, "--json", "show", "t1").stdout)
    assert fairlane(home, "down").returncode == 0
    assert not lives(server["pid"])
    assert not (home / "server.json").exists()


def test_a_server_that_dies_is_started_again(home: Path):
    first = up(home) and served(home)
    assert first
    os.kill(first["pid"], signal.SIGKILL)
    again = until(lambda: (found := served(home)) and found["pid"] != first["pid"] and found)
    assert ready(again["url"])
    log = (home / "daemon.log").read_text()
    assert "the server ended (-9) and starts again in 1s" in log
    assert "key=" not in log, "no link goes into a log"


def test_a_server_does_not_outlive_a_daemon_that_was_killed(home: Path):
    told = up(home)
    server = served(home)
    assert server
    os.kill(told["pid"], signal.SIGKILL)
    until(lambda: not lives(server["pid"]))
    assert not (home / "server.json").exists()


def test_off_loopback_nothing_starts_unless_asked_for(home: Path):
    (home / "fairlane.toml").write_text('server.host = "0.0.0.0"\n')
    refused = fairlane(home, "up", "--detach")
    assert refused.returncode == 2
    assert "0.0.0.0 is not loopback, and plain HTTP shows the token" in refused.stderr
    assert not (home / "daemon.lock").exists()


def test_a_second_daemon_says_which_one_is_there(home: Path):
    first = fairlane(home, "--json", "up", "--detach", "--no-server")
    second = fairlane(home, "up", "--detach", "--no-server")
    assert second.returncode == 1
    pid = json.loads(first.stdout)["pid"]
    assert f"`fairlane up` runs already (pid {pid})" in second.stderr.splitlines()[0]
