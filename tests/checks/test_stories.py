"""Random kills of daemons and runners while checks run: each ends, none runs twice at once."""

from __future__ import annotations

import json
import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.checks.coders import Coders
from tests.daemon.world import World, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TASKS, KILLS = 8, 14
#: Passes for the work of attempt {enough} and later ones; alone, or it says so.
CHECK = (
    "flock -w 20 -E 77 {lock} sh -c 'sleep 0.$(expr $$ % 7); test \"$(cat answer)\" -ge {enough}'; "
    "code=$?; if test $code = 77; then echo twice >> {lock}.twice; fi; exit $code"
)


def runners(world: World) -> list[int]:
    """The runners that live, of agents and of checks."""
    found = []
    for file in world.home.glob("runs/*/*/runner.json"):
        with suppress(OSError, ValueError):
            pid = int(json.loads(file.read_text())["pid"])
            if not (file.parent / "exit.json").exists() and b"runner.main" in command(pid):
                found.append(pid)
    return sorted(found)


def command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


SOAKED = pytest.mark.soak(seconds=30)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=SOAKED), pytest.param(3, marks=SOAKED)])
def test_nothing_is_done_unchecked(world: World, coders: Coders, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    world.policy('retry.base = "0s"\nretry.jitter = 0\nretry.max_attempts = 30\nlease.ttl = "5s"\n')
    enough = {f"t{number}": draw.choice([0, 0, 2, 3]) for number in range(TASKS)}
    for task, least in enough.items():
        for attempt in range(1, 40):
            coders.does(task, attempt, f"echo {attempt} > answer; sleep 0.{draw.randrange(5)}")
        checks = [
            (name, CHECK.format(lock=tmp_path / f"{task}.{name}", enough=least))
            for name in ("one", "two")
        ]
        coders.add(task, *checks)
    pid = world.up()
    for _ in range(KILLS):
        wait_for(draw.uniform(0.1, 1.0))
        living = runners(world)
        if living and draw.random() < 0.6:
            with suppress(ProcessLookupError):
                os.kill(draw.choice(living), signal.SIGKILL)
        else:
            world.kill(pid)
            wait_for(draw.uniform(0.0, 0.5))
            pid = world.up()
    world.kill(pid)
    world.run()
    assert set(world.statuses().values()) <= {"done", "parked"}
    for task, status in world.statuses().items():
        ends = world.attempts(task)
        for each in ends:
            passed = [row.get("passed") for row in each.checks]
            assert (each.outcome == "succeeded") == all(passed), (task, each.number, passed)
            assert not (each.outcome == "check_failed" and all(passed))
        assert (ends[-1].outcome == "succeeded") == (status == "done")
        if status == "done":
            assert int(coders.file(task, "answer")) >= enough[task]
    assert list(tmp_path.glob("*.twice")) == []
    assert world.processes() == []
    assert world.sound()
