"""An agent acts for no other attempt, hides behind no runner, and cannot put off its own stop."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.executors.starting import RUN
from tests.attackers.test_sandbox_walls import PROBLEMS, settle_in
from tests.daemon.world import World, is_zombie, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
NEEDS_LANDLOCK = pytest.mark.skipif(bool(PROBLEMS["landlock"]), reason=PROBLEMS["landlock"])
#: Asks at every socket of an attempt that is not its own; the second time by a child, when the one
#: that connected has ended.
MEDDLER = """
import contextlib, json, os, socket
def ask(path, by_child):
    with socket.socket(socket.AF_UNIX) as connection:
        if by_child and (child := os.fork()):
            return os.waitpid(child, 0)
        connection.connect(path)
        if by_child and os.fork():
            os._exit(0)
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(b'{"operation": "complete", "arguments": {}}\\n')
        said.write(connection.makefile().readline())
        said.flush()
        if by_child:
            os._exit(0)
own = os.environ["FAIRLANE_SOCKET"]
with open("/proc/net/unix") as file:
    paths = {line.split()[-1] for line in file if line.endswith("/socket\\n")}
with open(os.environ["FAIRLANE_ARTIFACTS"] + "/said", "a") as said:
    for path in paths - {own}:
        if path == NEIGHBOUR:
            ask(path, False)
            ask(path, True)
import time
time.sleep(1)
"""
#: Leaves a process behind that has the command line of a runner, and never ends: nobody reads what
#: `echo` writes.
DISGUISED = """
import os, sys, time
place = os.environ["FAIRLANE_ARTIFACTS"] + "/pid"
if os.fork():
    while not os.path.exists(place):
        time.sleep(0.01)
    time.sleep(0.5)
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
read, write = os.pipe()
os.set_inheritable(read, True)
os.set_blocking(write, False)
try:
    while True:
        os.write(write, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(write, True)
os.dup2(write, 1)
os.dup2(os.open(os.devnull, os.O_RDWR), 2)
with open(place + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(place + ".new", place)
os.execve("/bin/echo", ["runner", *sys.argv[1:]], {})
"""
#: Leaves a real runner behind, which waits for orders that nobody but itself could give.
IDLE_RUNNER = DISGUISED.replace("os.dup2(write, 1)", "os.dup2(os.pipe()[0], 0)").replace(
    'os.execve("/bin/echo", ["runner", *sys.argv[1:]], {})',
    "[os.set_inheritable(n, True) for n in range(3, 12) if os.path.exists(f'/proc/self/fd/{n}')]\n"
    "os.execve(RUNNER[0], RUNNER, {})",
)


def script(world: World, name: str, text: str) -> dict[str, Any]:
    return {"id": name, "command": [PYTHON, "-c", text, *RUN[1:]]}


def is_alive(world: World, task: str) -> bool:
    """Only for kinds that leave numbers of processes as they are: what is found is killed."""
    pid = int((world.home / "artifacts" / task / "pid").read_text())
    found = Path(f"/proc/{pid}").exists() and not is_zombie(pid)
    if found:
        os.kill(pid, 9)
    return found


@NEEDS_LANDLOCK
def test_it_is_refused_at_the_socket_of_another_attempt(world: World) -> None:
    settle_in(world, "landlock", more='[sandbox.project.open]\nkind = "none"\n')
    world.fairlane("project", "add", "open")
    told = f'echo "$FAIRLANE_SOCKET" > "{world.marks}/part"; mv "{world.marks}/part" '
    waits = world.waiting("other", more=f'{told} "{world.marks}/socket";') | {"project": "open"}
    world.add(waits)
    world.up()
    until((world.marks / "socket").exists)
    path = (world.marks / "socket").read_text().strip()
    world.add(script(world, "meddler", f"NEIGHBOUR = {path!r}\n{MEDDLER}"))
    until(lambda: world.statuses()["meddler"] == "done")
    said = (world.home / "artifacts" / "meddler" / "said").read_text().splitlines()
    codes = [json.loads(line)["document"]["error"]["code"] for line in said]
    assert codes == ["forbidden", "forbidden"]
    assert world.statuses()["other"] == "running"


@pytest.mark.parametrize("kind", ["none", pytest.param("landlock", marks=NEEDS_LANDLOCK)])
def test_what_looks_like_a_runner_is_gone_too(world: World, kind: str) -> None:
    settle_in(world, kind)
    world.add(script(world, "t", DISGUISED))
    world.run()
    assert not is_alive(world, "t")


@NEEDS_LANDLOCK
def test_a_runner_that_it_starts_is_gone_too(world: World) -> None:
    settle_in(world, "landlock")
    world.add(script(world, "t", f"RUNNER = {[*RUN]!r}\n{IDLE_RUNNER}"))
    world.run()
    assert not is_alive(world, "t")


def test_an_agent_that_halts_its_runner_is_stopped(world: World) -> None:
    halt = f"kill -STOP $PPID; touch {world.marks}/halted; exec sleep 3600"
    world.add({"id": "t", "command": ["sh", "-c", halt]})
    world.up()
    until((world.marks / "halted").exists)
    world.fairlane("cancel", "t")
    until(lambda: world.statuses() == {"t": "canceled"})


def test_an_agent_that_says_how_it_ended_is_not_left_to_itself(world: World) -> None:
    forged = "printf '{\"exit_code\": 0}' > $FAIRLANE_HOME/runs/t/1/exit.json"
    words = f"{forged}; echo $$ > {world.marks}/pid.new; mv {world.marks}/pid.new {world.marks}/pid"
    world.add({"id": "t", "command": ["sh", "-c", f"{words}; exec sleep 3600"]})
    world.up()
    until((world.marks / "pid").exists)
    world.fairlane("down")  # it takes in what has ended
    assert world.statuses() == {"t": "running"}
    world.up()
    world.fairlane("cancel", "t")
    until(lambda: world.statuses() == {"t": "canceled"})
    pid = int((world.marks / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or is_zombie(pid)
