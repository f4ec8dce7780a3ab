"""A server that cannot live beside its daemon: people are told why, and it is tried again."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.acceptance.commands import fairlane
from tests.faults.places import Home
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def warnings(home: Home) -> dict[str, str]:
    return {row["code"]: row["message"] for row in home.done("status")["warnings"]}


def test_a_port_that_is_taken_is_named_and_the_server_comes_up_when_it_is_free(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "home")
    words = ("--agent", "shell", "--id", "a", "--", "true")
    assert fairlane("add", "--home", home.folder, *words).code == 0
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    home.done("up", "--detach", "--port", str(port))
    try:
        told = until(lambda: warnings(home).get("server_down"))
        assert f"port {port} cannot be listened at" in told
        assert "give another port" in told
        assert "`fairlane down`, then `fairlane up --detach`" in told
        said = home("doctor")
        assert said.code == 1
        (finding,) = [row for row in said.document["findings"] if row["what"] == "server_down"]
        assert (finding["level"], f"port {port}" in finding["message"]) == ("wrong", True)
        assert home.done("show", "a")["task"]["status"] == "done", "the queue goes on"
        taken.close()
        until(lambda: "server_down" not in warnings(home))
        kinds = [row["kind"] for row in home.done("events")["events"]]
        assert kinds.count("daemon_warning") >= 1
        assert kinds.count("daemon_warning_over") == 1
    finally:
        taken.close()
        home.done("down")
