"""A disk that fills up while agents work: the loop waits, and goes on when there is room."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from fairlane.runtime.lock import holder
from tests.daemon.world import World, is_zombie, until, wait_for
from tests.faults.places import Home, refused, small_disk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MEGABYTE = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "24m") as found:
        yield found


@pytest.fixture
def world(disk: Path) -> Iterator[World]:
    found = World(disk / "home")
    yield found
    told = holder(found.home)
    pids = [told["pid"]] if told and told.get("pid") else []
    for pid in [*pids, *found.processes()]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            until(partial(is_zombie, pid))


def down(world: World, pid: int) -> None:
    """End the daemon, and wait until its disk is free."""
    world.fairlane("down")
    until(partial(is_zombie, pid))


def room(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_bsize


def fill(file: Path, leave: int = 0) -> None:
    """Write until nothing more goes in, or only so much is left."""
    step = 1 << 16
    with file.open("ab", buffering=0) as out, suppress(OSError):
        while room(file.parent) > leave:
            out.write(b"x" * min(step, room(file.parent) - leave))


def test_printing_agents_fill_the_disk_and_the_queue_finishes_when_there_is_room(
    world: World, disk: Path, tmp_path: Path
) -> None:
    world.policy(
        'caps.all = 6\nlease.ttl = "2s"\nretry.base = "200ms"\nretry.max_attempts = 50\n'
        'retry.cap = "1s"\nbreaker.launch_failures = "none"\n'
    )
    fill(disk / "ballast", leave=2 * MEGABYTE)
    go = tmp_path / "go"
    script = f"yes {'words ' * 80} | head -c 500000; until test -f {go}; do sleep 0.05; done"
    names = [f"p{number}" for number in range(12)]
    world.add(*({"id": name, "command": ["sh", "-c", script]} for name in names))
    pid = world.up()
    until(lambda: room(disk) < 4096)
    wait_for(2.5)  # the loop looks at the output of its agents twice
    go.touch()
    until(lambda: any((world.home / "runs").glob("*/*/exit.json")))
    assert not is_zombie(pid), (world.home / "daemon.log").read_text()
    (disk / "ballast").unlink()
    until(lambda: set(world.statuses().values()) == {"done"})
    told = holder(world.home)
    assert told is not None
    assert (told["pid"], told["begun"]) == (pid, True)
    down(world, pid)
    assert world.sound()


def test_a_final_record_counts_though_the_log_has_no_room_for_it(
    world: World, disk: Path, tmp_path: Path
) -> None:
    world.settings('[agents.own]\nargv = ["{command}"]\nparser = "demo"\n')
    world.policy("retry.max_attempts = 1\n")
    record = '{"type":"result","outcome":"succeeded","tokens":{"input":7,"output":5}}'
    go = tmp_path / "go"
    script = f"until test -f {go}; do sleep 0.05; done; echo '{record}'"
    world.add({"id": "a", "agent": "own", "command": ["sh", "-c", script]})
    pid = world.up()
    agent = world.runner("a")["agent_pid"]
    fill(disk / "ballast")
    go.touch()
    until(partial(is_zombie, agent))
    (disk / "ballast").unlink()
    until(lambda: world.statuses() == {"a": "done"})
    (attempt,) = world.attempts("a")
    assert (attempt.outcome, attempt.tokens) == ("succeeded", (7, 5, 0, 0))
    down(world, pid)


def test_who_cannot_begin_for_lack_of_room_says_so_and_may_be_tried_again(
    world: World, disk: Path
) -> None:
    world.add({"id": "a", "command": ["true"]})
    home = Home(world.home)
    fill(disk / "ballast")
    said = home("run")
    assert said.document["error"]["code"] in ("disk_full", "io_error")
    refused(said, 75, said.document["error"]["code"], hint="disk")
    said = home("up", "--detach", "--no-server")
    refused(said, 75, "not_up", "the daemon did not come up", "daemon.log")
    assert holder(home.folder) is None
    (disk / "ballast").unlink()
    assert home.done("run")["ended"] == 1


def test_a_loop_that_cannot_write_waits_without_work(world: World, disk: Path) -> None:
    world.policy('lease.ttl = "1s"\n')
    world.add(world.marking("a", 0, more=f'until test -f "{disk}/go"; do sleep 0.05; done;'))
    pid = world.up()
    world.started("a")
    (disk / "go.new").touch()
    fill(disk / "ballast")
    log = world.home / "daemon.log"
    wait_for(2.0)  # it must renew, and cannot
    before = ticks(pid)
    wait_for(2.0)
    assert ticks(pid) - before < os.sysconf("SC_CLK_TCK"), "it works all the time"
    (disk / "ballast").unlink()
    (disk / "go.new").rename(disk / "go")
    until(lambda: world.statuses()["a"] == "done")
    assert len(world.attempts("a")) == 1
    warned = [line for line in log.read_text().splitlines() if line.startswith("warning: ")]
    assert len(warned) == len(set(warned))
    assert any("no room left" in line for line in warned), log.read_text()
    down(world, pid)


def ticks(pid: int) -> int:
    """Processor time of a process, in ticks of the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
