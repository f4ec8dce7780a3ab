"""An agent that uses more than it may is stopped, and its task says by which limit."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from fairlane.executors.sandbox import machine
from tests.daemon import conftest as daemon
from tests.daemon.world import World, is_zombie, until

pytestmark = pytest.mark.slow
world = daemon.world

PROBLEMS = {"none": "", "bwrap": machine.bwrap_problem(), "landlock": machine.landlock_problem()}
KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(bool(problem), reason=problem))
    for kind, problem in PROBLEMS.items()
]
MEMORY = "import time; held = bytearray(300 << 20); time.sleep(3600)"
PROCESSES = "import os, time; [os.fork() or time.sleep(3600) for _ in range(60)]; time.sleep(3600)"
CPU = "while True: pass"
FILES = "import os; print(len([os.open('/dev/null', 0) for _ in range(100)]))"


def run(world: World, kind: str, limit: str, program: str) -> str:
    """How an attempt with this limit ended."""
    world.settings(f'[sandbox]\nkind = "{kind}"\n{limit}\n')
    world.add({"id": "t", "command": [sys.executable, "-c", program], "max_attempts": 1})
    world.run()
    assert world.statuses() == {"t": "parked"}
    (attempt,) = world.attempts("t")
    assert attempt.outcome == "failed"
    assert world.processes() == []
    return str(attempt.detail)


@pytest.mark.parametrize("kind", KINDS)
def test_too_much_memory(world: World, kind: str) -> None:
    detail = run(world, kind, 'memory = "200M"', MEMORY)
    assert detail.startswith("stopped at a limit (memory: ")
    assert detail.endswith(", 200 MiB allowed)")


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_processes(world: World, kind: str) -> None:
    detail = run(world, kind, "processes = 20", PROCESSES)
    assert detail.startswith("stopped at a limit (processes: ")
    assert detail.endswith(", 20 allowed)")


@pytest.mark.parametrize("kind", KINDS)
def test_too_much_cpu_time(world: World, kind: str) -> None:
    detail = run(world, kind, 'cpu = "1s"', CPU)
    assert detail == "stopped at a limit (cpu: 1 s of CPU time in one process)"


@pytest.mark.parametrize("kind", KINDS)
def test_too_many_open_files(world: World, kind: str) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 100
    assert run(world, kind, "files = 64", FILES) == "exit 1"
    assert "Too many open files" in (world.home / "runs" / "t" / "1" / "stderr.log").read_text()


@pytest.mark.skipif(bool(PROBLEMS["bwrap"]), reason=PROBLEMS["bwrap"])
@pytest.mark.parametrize("stubborn", [False, True])
def test_a_stop_asks_the_agent_inside_first_and_kills_all_of_it_last(
    world: World, stubborn: bool
) -> None:
    world.settings('[sandbox]\nkind = "bwrap"\n[agents.shell]\nstop = ["2s", "1s"]\n')
    answer = "" if stubborn else "echo interrupted > heard; exit 3"
    script = f"trap '{answer}' INT; trap '' TERM; setsid sleep 3601 & echo up > up; "
    script += "while true; do sleep 0.1; done"
    world.add({"id": "t", "command": ["sh", "-c", script]})
    world.up()
    work = world.home / "work" / "t"
    until((work / "up").exists)
    wrapper = world.runner("t")["agent_pid"]
    inside = below(wrapper)
    assert len(inside) >= 3
    world.fairlane("cancel", "t")
    until(lambda: world.statuses() == {"t": "canceled"})
    assert (work / "heard").exists() is not stubborn
    assert [pid for pid in inside if Path(f"/proc/{pid}").exists() and not is_zombie(pid)] == []


def below(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [each for child in map(int, children) for each in (child, *below(child))]
