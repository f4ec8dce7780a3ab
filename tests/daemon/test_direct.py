"""Direct mode: `add` starts its task itself, beside a daemon and without one."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fairlane.app import Fairlane
from fairlane.runtime.lock import SETTLING, STARTING
from tests.daemon.world import World, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

DIRECT = 'capacity.mode = "direct"\nretry.base = "0s"\nretry.jitter = 0\n'


def add(world: World, *records: dict[str, Any]) -> None:
    """In direct mode what is added is started by this very process."""
    with Fairlane(world.home) as lane:
        lane.add([{"agent": "shell", **record} for record in records])


def until_gate(world: World, name: str) -> dict[str, Any]:
    """A task that runs until there is a file `gate`."""
    gate = world.home / "gate"
    return world.marking(name, 0.0, more=f'while [ ! -e "{gate}" ]; do sleep 0.05; done;')


def outcomes(world: World, task: str) -> list[str | None]:
    return [attempt.outcome for attempt in world.attempts(task)]


def open_files(pid: int) -> set[str]:
    with suppress(OSError):  # one may be closed while it is looked at
        return {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return set()


def test_direct_starts_beside_a_daemon_run_once_each_whatever_the_cap(world: World) -> None:
    world.settings("")
    world.policy(DIRECT + "caps.all = 1\n")
    world.up()
    names = ["a", "b", "c", "d"]
    for name in names:
        script = world.marking(name, 2.0)["command"]
        world.fairlane("add", "--id", name, "--agent", "shell", "--", *script)
    until(lambda: set(world.statuses().values()) == {"done"})
    found = {name: [(a.outcome, a.direct) for a in world.attempts(name)] for name in names}
    assert found == {name: [("succeeded", True)] for name in names}
    assert world.mark_counts() == {"start": 4, "end": 4}


def test_without_a_daemon_a_chain_runs_to_its_end_by_itself(world: World) -> None:
    world.policy(DIRECT)
    world.fairlane("add", "--id", "z1", "--agent", "shell", "--", "true")
    add(world, {"id": "z2", "needs": ["z1"], "command": ["true"]})
    add(world, {"id": "z3", "needs": ["z2"], "command": ["true"]})
    until(lambda: set(world.statuses().values()) == {"done"})
    assert [outcomes(world, name) for name in ("z1", "z2", "z3")] == [["succeeded"]] * 3
    assert world.attempts("z1")[0].direct


def test_without_a_daemon_what_waits_for_a_slot_or_a_lock_starts_when_it_is_free(
    world: World,
) -> None:
    world.settings("[worker]\nslots = 2\n")
    world.policy(DIRECT)
    add(world, until_gate(world, "a") | {"locks": ["l"]}, until_gate(world, "b"))
    add(world, world.marking("slot", 0.0), world.marking("lock", 0.0) | {"locks": ["l"]})
    assert world.statuses() == {"a": "running", "b": "running", "slot": "queued", "lock": "queued"}
    (world.home / "gate").touch()
    until(lambda: set(world.statuses().values()) == {"done"})
    assert world.mark_counts() == {"start": 4, "end": 4}
    assert world.most_in_flight() == 2


def test_without_a_daemon_a_failure_is_tried_again_until_it_parks(world: World) -> None:
    world.policy(DIRECT + "retry.max_attempts = 2\n")
    add(world, {"id": "a", "command": ["false"]})
    until(lambda: world.statuses()["a"] == "parked")
    assert outcomes(world, "a") == ["failed", "failed"]


def test_a_child_that_an_attempt_starts_directly_is_not_swept_with_it(world: World) -> None:
    world.policy(DIRECT + "attempt.may_add.command = true\n")
    child = world.marking("child", 1.0)["command"]
    words = [sys.executable, "-m", "fairlane", "add", "--id", "child", "--agent", "shell", "--"]
    add(world, {"id": "a", "command": [*words, *child]})
    until(lambda: world.statuses() == {"a": "done", "child": "done"})
    assert outcomes(world, "child") == ["succeeded"]


def test_ends_that_come_together_are_each_taken_in_once(world: World) -> None:
    world.policy(DIRECT)
    names = [f"t{number}" for number in range(4)]
    add(world, *(until_gate(world, name) for name in names))
    (world.home / "gate").touch()
    until(lambda: set(world.statuses().values()) == {"done"})
    assert [outcomes(world, name) for name in names] == [["succeeded"]] * 4


@pytest.mark.parametrize("name", [STARTING, SETTLING])
def test_a_scheduler_waits_for_a_command_that_works_on_attempts(world: World, name: str) -> None:
    world.add({"id": "a", "command": ["true"]})
    with (world.home / name).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = [sys.executable, "-m", "fairlane", "--home", str(world.home), "run"]
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until(lambda: lock.name in open_files(run.pid))  # it wants it, and waits
        assert world.statuses() == {"a": "queued"}
    said, _ = run.communicate(timeout=60)
    assert run.returncode == 0, said
    assert world.statuses() == {"a": "done"}
