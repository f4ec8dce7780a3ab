"""Where a cgroup can be made, nothing that was in it outlives its attempt, not even its runner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane.executors.runner import cgroup
from fairlane.executors.sandbox import machine
from tests.attackers.test_sandbox_tree import RUNAWAY, alive
from tests.daemon import conftest as daemon
from tests.daemon.world import World, until


def problem() -> str:
    """Why this test cannot make a cgroup."""
    group = cgroup.Group("/")
    if not group.path:
        return "this process may not make cgroups (v2)"
    group.end()
    return ""


PROBLEM = problem()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)]
world = daemon.world
#: Limits that nothing here reaches.
WIDE = 'memory = "64G"\nprocesses = 5000\n'


def groups() -> set[str]:
    found = {Path(place) for place in cgroup.places()}
    return {str(path) for place in found for path in place.glob(f"{cgroup.PREFIX}*")}


def is_here(world: World) -> bool:
    return str(Path(cgroup.places()[0]) / cgroup.name_of(str(world.home / "runs/t/1"))) in groups()


@pytest.mark.parametrize("kind", ["none", "landlock"])
def test_what_hides_is_gone_although_its_runner_was_killed(world: World, kind: str) -> None:
    if kind == "landlock" and machine.landlock_problem():
        pytest.skip(machine.landlock_problem())
    world.settings(f'[sandbox]\nkind = "{kind}"\nwrite = ["{world.marks}"]\n{WIDE}')
    command = [sys.executable, "-c", RUNAWAY, str(world.marks), "stay"]
    world.add({"id": "t", "command": command, "max_attempts": 1})
    pid = world.up()
    until((world.marks / "ready").exists)
    assert len(alive(world)) == 3
    assert is_here(world)
    world.kill(pid)
    os.kill(world.runner("t")["pid"], signal.SIGKILL)
    world.up()
    until(lambda: world.statuses() == {"t": "parked"})
    assert alive(world) == []
    assert not is_here(world)


def test_no_group_stays_behind_an_attempt(world: World) -> None:
    world.settings(f"[sandbox]\n{WIDE}")
    show = "cat /proc/self/cgroup"
    world.add({"id": "t", "command": ["sh", "-c", show]})
    world.run()
    assert world.statuses() == {"t": "done"}
    assert f"/{cgroup.PREFIX}" in (world.home / "runs/t/1/stdout.log").read_text()
    assert not is_here(world)


def test_groups_that_were_made_in_it_go_with_it(tmp_path: Path) -> None:
    group = cgroup.Group(str(tmp_path))
    inner = Path(group.path, "a", "b")
    inner.mkdir(parents=True)
    with subprocess.Popen(["sleep", "3600"]) as sleeper:
        (inner / "cgroup.procs").write_text(str(sleeper.pid))
        group.end()
        assert sleeper.wait() == -signal.SIGKILL
    assert not inner.parents[1].exists()


def test_a_task_that_an_agent_starts_is_no_part_of_its_group(world: World) -> None:
    world.settings(f"[sandbox]\n{WIDE}")
    world.policy('capacity.mode = "direct"\nattempt.may_add.command = true\n')
    wait = f'until test -e "{world.marks}/go"; do sleep 0.05; done; touch "{world.marks}/end"'
    add = [sys.executable, "-m", "fairlane", "add", "--id", "child", "--agent", "shell", "--"]
    world.fairlane("add", "--id", "t", "--agent", "shell", "--", *add, "sh", "-c", wait)
    until(lambda: world.statuses().get("t") == "done" and "child" in world.statuses())
    (world.marks / "go").touch()
    until((world.marks / "end").exists)


@pytest.fixture
def service() -> Iterator[Path]:
    """A group that was given away, whose process runs in a group below."""
    place = Path(cgroup.own_group()) / "fairlane.test.service"
    (place / "daemon").mkdir(parents=True)
    os.setxattr(place, "trusted.delegate", b"1")
    yield place
    (place / "cgroup.kill").write_text("1")
    until(lambda: "populated 0" in (place / "cgroup.events").read_text())
    (place / "daemon").rmdir()
    place.rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root marks a group as given away")
def test_in_a_service_that_may_make_groups_they_are_made_beside_its_own(service: Path) -> None:
    program = (
        "import pathlib, sys; pathlib.Path(sys.argv[1], 'cgroup.procs').write_text('0');"
        "from fairlane.executors.runner import cgroup; group = cgroup.Group('/');"
        "group.limit(1 << 30, 100); print(group.path); group.end()"
    )
    words = [sys.executable, "-c", program, str(service / "daemon")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(service / cgroup.name_of("/"))
    assert {path.name for path in service.iterdir() if path.is_dir()} == {"daemon"}
