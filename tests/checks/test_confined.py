"""Checks in a sandbox: as their agent, and without the network unless somebody gives it."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from tests.attackers.test_sandbox_walls import KINDS, PROBLEMS
from tests.daemon.world import World
from tests.workspaces.yard import git, make_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
#: Says what worked, as its last line.
TRIES = """
import json, os, socket, sys
told, won = json.loads(sys.argv[1]), []
def attempt(name, deed):
    try:
        deed()
    except BaseException:
        return
    won.append(name)
for path in told["read"]:
    attempt("read " + path, lambda: open(path, "rb").read(1))
for path in told["write"]:
    attempt("write " + path, lambda: os.open(path, os.O_WRONLY | os.O_APPEND))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", told["port"]), 30))
open("by-a-check", "w").close()
print(json.dumps(won))
"""


def tried(world: World, tmp_path: Path, settings: str) -> list[str]:
    """What a check in a sandbox could do that it should not; its task is done."""
    repo = make_repository(tmp_path / "web")
    world.settings(f"[worker]\nslots = 2\n{settings}")
    world.fairlane("project", "add", "web", "--repo", str(repo))
    canary = tmp_path / "canary"
    canary.write_text("sings")
    home = world.home
    own = [home / name for name in ("fairlane.db", "fairlane.toml", "runs/a/1/stdout.log")]
    outside = [str(path) for path in (canary, *own)]
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = {"read": outside, "write": [*outside, str(repo / "README")]}
        told["port"] = server.getsockname()[1]
        check = {"name": "tries", "argv": [PYTHON, "-c", TRIES, json.dumps(told)]}
        command = ["sh", "-c", "echo made > made"]
        world.add({"id": "a", "project": "web", "command": command, "checks": [check]})
        world.run()
    folder = home / "runs" / "a" / "1.check.0"
    assert world.statuses() == {"a": "done"}, (folder / "stderr.log").read_text()
    assert git(repo, "show", "fairlane/a:made") == "made"
    won: list[str] = json.loads((folder / "stdout.log").read_text().splitlines()[-1])
    return won


@pytest.mark.parametrize("kind", KINDS)
def test_it_reaches_its_folder_and_nothing_else(world: World, tmp_path: Path, kind: str) -> None:
    won = tried(world, tmp_path, f'[sandbox]\nkind = "{kind}"\n')
    assert [each for each in won if each != "connect"] == []
    assert ("connect" in won) == (kind == "landlock")  # which cannot take the network away


@pytest.mark.skipif(bool(PROBLEMS["bwrap"]), reason=PROBLEMS["bwrap"])
def test_the_network_is_given_by_name(world: World, tmp_path: Path) -> None:
    assert tried(world, tmp_path, '[checks]\nnetwork = true\n[sandbox]\nkind = "bwrap"\n') == [
        "connect"
    ]


@pytest.mark.skipif(bool(PROBLEMS["bwrap"]), reason=PROBLEMS["bwrap"])
def test_but_not_where_its_agent_has_none(world: World, tmp_path: Path) -> None:
    off = '[checks]\nnetwork = true\n[sandbox]\nkind = "bwrap"\nnetwork = false\n'
    assert tried(world, tmp_path, off) == []


@pytest.mark.skipif(bool(PROBLEMS["bwrap"]), reason=PROBLEMS["bwrap"])
def test_checks_alone_can_be_confined(world: World, tmp_path: Path) -> None:
    assert tried(world, tmp_path, '[checks]\nsandbox = { kind = "bwrap" }\n') == []
