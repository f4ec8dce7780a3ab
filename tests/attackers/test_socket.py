"""The attempt's socket: an agent that cannot see the home acts for itself, and for nobody else."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fairlane.app.attempt_call import answer_call
from fairlane.model.errors import FairlaneError
from tests.daemon.world import World, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PYTHON = sys.executable
#: The command line inside an agent from which the home is hidden.
HIDDEN = f"env FAIRLANE_HOME=/nonexistent {PYTHON} -m fairlane"


@pytest.fixture(params=["process", "tmux"])
def far(world: World, request: pytest.FixtureRequest) -> World:
    """A world whose agents run in either executor."""
    if request.param == "tmux" and shutil.which("tmux") is None:
        pytest.skip("tmux is missing")
    world.settings(f'[worker]\nslots = 10\nexecutor = "{request.param}"\n')
    world.policy("retry.max_attempts = 1\nattempt.may_add.command = true\ncaps.all = 10\n")
    return world


def socket_of(world: World, task: str) -> Path:
    """Where the socket of a waiting task is; its agent has written it down."""
    until((world.marks / f"{task}.socket").exists)
    return Path((world.marks / f"{task}.socket").read_text().strip())


def named(world: World, name: str) -> str:
    """A task's id that no other test has: tmux sessions of all tests are together."""
    return f"{name}-{world.home.parent.name[-12:]}".replace("_", "-")


def waiting(world: World, task: str) -> dict[str, Any]:
    told = f'echo "$FAIRLANE_SOCKET" > "{world.marks}/part"; mv "{world.marks}/part" '
    return world.waiting(task, more=f'{told} "{world.marks}/{task}.socket";')


def exchange(path: Path, data: bytes, *, half: bool = False) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(200)
        connection.connect(str(path))
        with suppress(BrokenPipeError):
            connection.sendall(data)
        if half:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):
            while part := connection.recv(1 << 16):
                answer += part
    found: dict[str, Any] = json.loads(answer)
    return found


def call(path: Path, operation: str, **arguments: object) -> dict[str, Any]:
    text = json.dumps({"operation": operation, "arguments": arguments})
    return exchange(path, text.encode() + b"\n")


def test_an_agent_reports_adds_a_child_and_completes_without_seeing_the_home(far: World) -> None:
    task, child = named(far, "parent"), named(far, "child")
    script = (
        f"set -e; {HIDDEN} report --tokens input=5,output=7 --note half; "
        f"{HIDDEN} add --id {child} --json -- true > {far.marks}/added; "
        f"{HIDDEN} show $FAIRLANE_TASK --json > {far.marks}/shown; {HIDDEN} heartbeat; "
        f"if {HIDDEN} list; then exit 9; fi; "
        f"if {HIDDEN} cancel {task}; then exit 9; fi; "
        f"if {HIDDEN} release L999; then exit 9; fi; "
        f"{HIDDEN} complete; touch {far.marks}/completed"
    )
    far.add({"id": task, "command": ["sh", "-c", script]})
    far.run()
    stderr = (far.home / "runs" / task / "1" / "stderr.log").read_text()
    assert far.statuses() == {task: "done", child: "done"}, stderr
    assert (far.marks / "completed").exists(), stderr
    (attempt,) = far.attempts(task)
    assert (attempt.outcome, attempt.tokens) == ("succeeded", (5, 7, 0, 0))
    assert json.loads((far.marks / "shown").read_text())["task"]["id"] == task
    assert far.fairlane("show", child)["task"]["parent"] == task
    refused = ("the token of an attempt cannot do this", "cancel: not inside an attempt")
    assert [stderr.count(words) for words in refused] == [2, 1], stderr
    assert not Path("/nonexistent").exists()


def test_the_socket_works_while_the_daemon_is_down_and_ends_with_its_attempt(far: World) -> None:
    task = named(far, "alone")
    far.add(waiting(far, task))
    pid = far.up()
    path = socket_of(far, task)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    far.kill(pid)
    assert call(path, "report", note="alone")["exit_code"] == 0
    assert far.fairlane("show", task)["task"]["id"] == task
    far.let_go(task)
    until(lambda: not path.parent.exists())
    far.run()
    assert far.statuses() == {task: "done"}


def test_a_runner_that_is_killed_takes_its_socket_with_it(world: World) -> None:
    world.add(waiting(world, "t"))
    world.up()
    path = socket_of(world, "t")
    world.kill(world.runner("t")["pid"])
    until(lambda: not path.parent.exists())
    world.fairlane("down")


HOSTILE: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"hello\n", "the call is not JSON"),
    "deep": (b"[" * 50_000 + b"\n", "the call is not JSON"),
    "a list": (b"[]\n", "not a call"),
    "unknown": (b'{"operation": "destroy"}\n', "there is no operation 'destroy'"),
    "no name": (b'{"operation": {"a": 1}}\n', "there is no operation"),
    "arguments": (b'{"operation": "report", "arguments": 3}\n', "arguments: not an object"),
    "extra": (b'{"operation": "report", "home": "/"}\n', "not a call"),
    "huge": (b'{"operation": "' + b"x" * (2 << 20), "a call has at most 1048576 bytes"),
    "NUL": (b"\0\xff\n", "the call is not JSON"),
    "other lease": (
        b'{"operation": "complete", "arguments": {"lease": "L999"}}\n',
        "the token of an attempt cannot do this",
    ),
    "other task": (
        b'{"operation": "show", "arguments": {"task": "other"}}\n',
        "the token of an attempt cannot do this",
    ),
    "for people": (
        b'{"operation": "pause", "arguments": {}}\n', "the token of an attempt cannot do this",
    ),
    "argument": (b'{"operation": "report", "arguments": {"x": 1}}\n', "x"),
    "number": (
        b'{"operation": "report", "arguments": {"tokens": 1e300}}\n', "tokens",
    ),
}  # fmt: skip


def test_hostile_calls_are_refused_and_the_next_good_one_is_answered(world: World) -> None:
    world.policy("retry.max_attempts = 1\n")
    world.add(
        waiting(world, "t"),
        {"id": "other", "command": ["true"], "not_before": "2099-01-01T00:00:00Z"},
    )
    world.up()
    path = socket_of(world, "t")
    for name, (data, message) in HOSTILE.items():
        answer = exchange(path, data)
        assert answer["exit_code"] in (1, 2), name
        assert message in answer["document"]["error"]["message"], (name, answer)
    half = exchange(path, b'{"operation": "rep', half=True)
    assert half["document"]["error"]["message"] == "half a call"
    idle = []  # they say nothing, hold a place, and go
    for _ in range(12):
        idle.append(socket.socket(socket.AF_UNIX))
        idle[-1].connect(str(path))
    for each in idle:
        each.close()
    assert call(path, "report", note="good")["document"]["task"] == "t"
    slow = socket.socket(socket.AF_UNIX)
    slow.connect(str(path))
    slow.sendall(b"{")  # it never ends: its time is over, and the next one is answered
    assert call(path, "heartbeat")["exit_code"] == 0
    assert b'"slow"' in slow.recv(1 << 16)
    slow.close()
    assert world.statuses() == {"t": "running", "other": "queued"}
    world.let_go("t")
    until(lambda: world.statuses()["t"] == "done")
    world.fairlane("down")


def test_a_call_is_bound_by_its_lease_and_ends_with_it(world: World) -> None:
    world.policy("retry.max_attempts = 1\n")
    world.add({"id": "t", "command": ["true"]})
    world.run()
    lease = world.attempts("t")[0].lease
    for text in ('{"operation": "add", "arguments": {"tasks": [{"prompt": "more"}]}}',
                 '{"operation": "show", "arguments": {"task": "t"}}'):  # fmt: skip
        with pytest.raises(FairlaneError, match="has ended"):
            answer_call(world.home, lease, None, text)
