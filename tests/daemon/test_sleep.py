"""A machine that sleeps does not work: only time awake counts towards an attempt's limits."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.daemon.world import World, until, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

#: Longer than a loaded machine takes to start an agent and to take in its end.
LIMIT = 12


def status_of(pid: int) -> str:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return text.rpartition(")")[2].split()[0]


def test_time_asleep_is_no_work_time(world: World) -> None:
    """Runner and agent are stopped for longer than the limits, as a laptop's night does."""
    world.policy(
        f'attempt.timeout = "{LIMIT}s"\nattempt.silence = "{LIMIT}s"\nretry.max_attempts = 1\n'
    )
    wait = f'until test -f "{world.marks}/go"; do sleep 0.02; done;'
    world.add(world.marking("a", 0, more=wait))
    world.up()
    world.started("a")
    told = world.runner("a")
    os.kill(told["pid"], signal.SIGSTOP)
    os.killpg(told["agent_pid"], signal.SIGSTOP)
    # D: the agent is a shell that waits for a child which was stopped before its program began
    until(lambda: status_of(told["pid"]) == "T" and status_of(told["agent_pid"]) in "TD")
    wait_for(LIMIT + 0.5)
    (world.marks / "go").touch()
    os.kill(told["pid"], signal.SIGCONT)
    until(lambda: status_of(told["pid"]) == "S")  # it has looked at its clock
    os.killpg(told["agent_pid"], signal.SIGCONT)
    until(lambda: world.statuses()["a"] in ("done", "parked"))
    (attempt,) = world.attempts("a")
    assert (attempt.outcome, attempt.detail) == ("succeeded", "")


@pytest.mark.parametrize("limit", ["timeout", "silence"])
def test_who_works_too_long_is_stopped_though_it_slept(world: World, limit: str) -> None:
    world.policy(f'attempt.{limit} = "4s"\nretry.max_attempts = 1\n')
    world.add(world.marking("a", 60))
    world.up()
    world.started("a")
    told = world.runner("a")
    os.kill(told["pid"], signal.SIGSTOP)
    os.kill(told["pid"], signal.SIGCONT)
    until(lambda: world.statuses()["a"] == "parked")
    assert world.attempts("a")[0].detail == limit
