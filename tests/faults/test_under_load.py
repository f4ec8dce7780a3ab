"""Faults while many agents work beside busy processes: a full disk, large output, damage, sleep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from fairlane.runtime.lock import holder
from tests.acceptance.commands import fairlane as run_fairlane
from tests.daemon import conftest as daemons
from tests.daemon.world import World, is_zombie, until, wait_for
from tests.faults.places import Home, small_disk
from tests.faults.test_full_disk import MEGABYTE, down, fill, room
from tests.faults.test_no_room import use_up_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
world = daemons.world

SLOTS = 16
#: Agents that print records as the parser `demo` reads them.
OWN = '[worker]\nslots = 16\n[agents.own]\nargv = ["{command}"]\nparser = "demo"\n'
#: One failure parks a task; waits are short.
ONE_TRY = """
caps.all = 16
retry.max_attempts = 1
retry.base = "0s"
cooldown.base = "200ms"
cooldown.exponent_max = 1
breaker.launch_failures = "none"
"""
RECORD = '{"type":"result","outcome":"succeeded","tokens":{"input":7,"output":5}}'


@pytest.fixture(autouse=True)
def busy() -> Iterator[None]:
    """Two processes that want a processor each."""
    words = [sys.executable, "-S", "-c", "while True: pass"]
    processes = [subprocess.Popen(words) for _ in range(2)]
    yield
    for process in processes:
        process.kill()
        process.wait()


def names_of(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


def outcomes(world: World, name: str) -> list[str | None]:
    return [each.outcome for each in world.attempts(name)]


# A full disk


@contextmanager
def on_small_disk(folder: Path) -> Iterator[tuple[World, Path]]:
    """A home on a disk of 20 MiB; nothing of it is left when the disk goes."""
    with small_disk(folder, "20m") as disk:
        world = World(disk / "home")
        try:
            yield world, disk
        finally:
            told = holder(world.home)
            for pid in [*([told["pid"]] if told and told["pid"] else []), *world.processes()]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    until(partial(is_zombie, pid))


def test_sixteen_slots_on_a_disk_that_fills_up_and_is_freed_lose_nothing(tmp_path: Path) -> None:
    """No attempt may fail: whatever the disk costs counts as `environment`."""
    with on_small_disk(tmp_path / "disk") as (world, disk):
        world.settings(OWN + "[log]\nmax_bytes = 200000\n")
        world.policy(ONE_TRY + 'lease.ttl = "5s"\n')
        go = tmp_path / "go"
        wait = f'until test -e "{go}"; do sleep 0.2; done'
        script = f"yes {'words ' * 40} | head -c 400000; {wait}; echo; echo '{RECORD}'"
        names = names_of(40)
        world.add(*({"id": n, "agent": "own", "command": ["sh", "-c", script]} for n in names))
        fill(disk / "ballast", leave=2 * MEGABYTE)
        home, log = Home(world.home), world.home / "daemon.log"
        log.write_text("\n")  # its first page has room for a warning
        pid = world.up()
        until(lambda: room(disk) < 4096)

        def has_warned() -> bool:
            fill(disk / "more")  # runners shorten their logs for the sake of their exit records
            return "no room left" in log.read_text()

        until(lambda: has_warned() or is_zombie(pid))
        accepted = added_while_full(home)
        go.touch()
        assert not is_zombie(pid), log.read_text()
        findings = {row["what"]: row for row in home("doctor").document["findings"]}
        assert findings["disk"]["level"] == "wrong"
        assert "Free some space" in findings["disk"]["hint"]
        (disk / "more").unlink()
        (disk / "ballast").unlink()
        until(lambda: set(world.statuses().values()) == {"done"}, seconds=400)
        told = holder(world.home)
        assert told is not None
        assert (told["pid"], told["begun"]) == (pid, True), "the same daemon"
        assert set(world.statuses()) == {*names, *accepted}
        for name in names:
            *before, last = world.attempts(name)
            assert {each.outcome for each in before} <= {"environment"}, outcomes(world, name)
            assert (last.outcome, last.tokens) == ("succeeded", (7, 5, 0, 0))
        says_what_to_do_once(log.read_text())
        assert world.most_in_flight() <= SLOTS
        down(world, pid)
        assert world.sound()


def added_while_full(home: Home) -> set[str]:
    """The ids that `add` accepted; what it refuses, it refuses with a hint, to be tried again."""
    accepted = set()
    for number in range(3):
        words = ("--home", home.folder, "--json", "--agent", "shell", "--id", f"late{number}")
        said = run_fairlane("add", *words, "--", "true")
        if said.code == 0:
            accepted.add(f"late{number}")
        else:
            assert said.code == 75, said
            assert "disk" in said.document["error"]["hint"], said
    return accepted


def says_what_to_do_once(log: str) -> None:
    warned = [line for line in log.splitlines() if line.startswith("warning: ")]
    assert any("no room left" in line and "Free some disk space" in line for line in warned), log
    assert warned.count(warned[0]) <= 3, "a warning is not repeated every turn"
    assert "Traceback" not in log


# No file can be made, large output, a damaged store, sleep


@pytest.mark.soak(seconds=10)  # without load: test_no_room
def test_no_file_can_be_made_and_none_of_many_is_parked(world: World) -> None:
    world.settings(OWN)
    world.policy(ONE_TRY)
    names = names_of(32)
    with small_disk(world.home / "runs", "8m", inodes=2000) as disk:
        made = use_up_files(disk)
        world.add(*({"id": name, "command": ["true"]} for name in names))
        pid = world.up()
        until(lambda: sum(len(world.attempts(name)) for name in names) > SLOTS)
        assert "parked" not in world.statuses().values()
        for file in made:
            file.unlink()
        until(lambda: set(world.statuses().values()) == {"done"}, seconds=400)
        assert {each for name in names for each in outcomes(world, name)} <= {
            "environment", "succeeded",
        }  # fmt: skip
        down(world, pid)


@pytest.mark.soak(seconds=10)  # without load: daemon/test_output
def test_many_that_print_much_at_once_lose_no_end_and_no_cost(world: World) -> None:
    world.settings(OWN)
    world.policy('caps.all = 16\nretry.max_attempts = 2\nretry.base = "0s"\n')
    names = names_of(SLOTS)
    script = f"yes {'x' * 900} | head -c 3000000; echo; echo '{RECORD}'"
    world.add(*({"id": n, "agent": "own", "command": ["sh", "-c", script]} for n in names))
    world.kill(world.up())  # whatever has begun ends without a daemon
    world.run()
    for name in names:
        *before, last = world.attempts(name)
        assert {each.outcome for each in before} <= {"lost"}, "killed between lease and launch"
        assert (last.outcome, last.tokens) == ("succeeded", (7, 5, 0, 0)), name


@pytest.mark.soak(seconds=10)  # without load: test_damage
def test_a_store_that_is_damaged_under_many_agents_is_replaced_and_they_are_adopted(
    world: World,
) -> None:
    world.settings(OWN)
    world.policy("caps.all = 16\n")
    names = names_of(SLOTS)
    world.add(*(world.waiting(name) for name in names))
    pid = world.up()
    until(lambda: set(world.statuses().values()) == {"running"})
    backup = Path(world.fairlane("backup")["backup"])
    world.kill(pid)
    home, store = Home(world.home), world.home / "fairlane.db"
    with world.context():
        pass  # the last one to close it leaves no log
    store.write_bytes(store.read_bytes()[:-5000])
    for words in (["add", "x"], ["run"], ["up", "--detach", "--no-server"]):
        said = home(*words)
        assert (said.code, str(backup) in said.out + said.err) == (1, True), said
    store.write_bytes(backup.read_bytes())
    world.up()
    world.let_go(*names)
    until(lambda: set(world.statuses().values()) == {"done"})
    assert world.mark_counts() == {"start": SLOTS, "end": SLOTS}, "nobody started twice"


@pytest.mark.soak(seconds=60)
def test_a_night_is_no_work_time_for_many(world: World) -> None:
    limit = 40
    world.settings(OWN)
    world.policy(f'caps.all = 16\nattempt.timeout = "{limit}s"\nretry.max_attempts = 1\n')
    names = names_of(SLOTS // 2)
    world.add(*(world.waiting(name) for name in names))
    world.up()
    told = [world.runner(name) for name in names]
    for each in told:
        os.kill(each["pid"], signal.SIGSTOP)
        os.killpg(each["agent_pid"], signal.SIGSTOP)
    wait_for(limit + 1.0)
    world.let_go(*names)
    for each in told:
        os.kill(each["pid"], signal.SIGCONT)
        os.killpg(each["agent_pid"], signal.SIGCONT)
    until(lambda: not {"queued", "leased", "running"} & set(world.statuses().values()))
    assert {tuple(outcomes(world, name)) for name in names} == {("succeeded",)}
