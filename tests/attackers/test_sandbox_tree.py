"""Nothing that an agent starts outlives its attempt, whatever it does to be forgotten."""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

import pytest

from tests.daemon import conftest as daemon
from tests.daemon.world import World, is_zombie, until

pytestmark = pytest.mark.slow
world = daemon.world

EXECUTORS = ("process", "tmux")
#: Leaves its group, its session, its parent and its environment behind; says who it is.
RUNAWAY = """
import os, sys
marks, then = sys.argv[1:]
names = iter("abc")
def run_away(name):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    words = ["sh", "-c", f"trap '' INT TERM HUP; echo $$ > {marks}/{name}; sleep 3600; sleep 3600"]
    os.close(1); os.close(2)
    os.execve("/bin/sh", words, {})
for name in names:
    run_away(name)
while not all(os.path.exists(f"{marks}/{name}") for name in "abc"):
    pass
open(f"{marks}/ready", "w").close()
if then == "stay":
    import time; time.sleep(3600)
"""
#: Starts itself again and again, each time out of sight; a process lives for a moment only.
HYDRA = """
import os, sys
if "FAIRLANE_RUN" in os.environ:
    os.execve(sys.executable, sys.orig_argv, {})
import fcntl
held = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(held, fcntl.LOCK_EX)
for _ in range(4):
    if os.fork() == 0:
        break
else:
    sys.exit()
os.setsid()
while True:
    if os.fork():
        os._exit(0)
"""


def alive(world: World) -> list[int]:
    pids = [int(text) for name in "abc" if (text := (world.marks / name).read_text())]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists() and not is_zombie(pid)]


def name_of(world: World) -> str:
    """A task's id that no other test has: sessions of tmux are named after it."""
    return f"t-{world.home.parent.name[-12:]}".replace("_", "-")


def runaway(world: World, then: str) -> dict[str, object]:
    return {
        "id": name_of(world),
        "command": [sys.executable, "-c", RUNAWAY, str(world.marks), then],
    }


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_hides_is_gone_when_its_agent_has_ended(world: World, executor: str) -> None:
    world.settings(f'[worker]\nexecutor = "{executor}"\n')
    world.add(runaway(world, "end"))
    world.run()
    assert world.statuses() == {name_of(world): "done"}
    assert alive(world) == []


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_hides_is_gone_after_a_stop(world: World, executor: str) -> None:
    world.settings(f'[worker]\nexecutor = "{executor}"\n')
    world.add(runaway(world, "stay"))
    world.up()
    until((world.marks / "ready").exists)
    assert len(alive(world)) == 3
    world.fairlane("cancel", name_of(world))
    until(lambda: world.statuses() == {name_of(world): "canceled"})
    assert alive(world) == []


def test_what_never_stands_still_is_gone_too(world: World) -> None:
    held = world.marks / "held"
    world.add({"id": "t", "command": [sys.executable, "-I", "-S", "-c", HYDRA, str(held)]})
    world.run()
    assert world.statuses() == {"t": "done"}
    with held.open("r+") as file:  # held by whatever still runs
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
