"""A limit on open files that is too low for all slots: fewer agents run, and everybody says why."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fairlane.runtime.lock import holder
from tests.daemon import conftest as daemons
from tests.daemon.world import World, until
from tests.waiting import LIMIT_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
world = daemons.world

#: With the hard limit below there is room for so many agents.
HARD, AGENTS = 64, 16


@contextmanager
def daemon(world: World, soft: int, hard: int) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon that may have only so many files open."""
    words = [sys.executable, "-m", "fairlane", "--home", str(world.home), "up", "--no-server"]
    shell = ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh"]
    with (world.home / "daemon.log").open("ab") as log:
        process = subprocess.Popen([*shell, *words], stdout=log, stderr=log)
    try:
        until(lambda: (told := holder(world.home)) and told["begun"])
        yield process
    finally:
        process.terminate()
        process.wait(LIMIT_SECONDS)
        for each in world.processes():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)


def limit_of(pid: int) -> list[str]:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line.split()[3:5] for line in lines if line.startswith("Max open files"))


def test_a_hundred_agents_with_64_files(world: World) -> None:
    world.policy("caps.all = 100\n")
    world.settings("[worker]\nslots = 100\n")
    names = [f"t{number}" for number in range(100)]
    held = f'until test -e "{world.home}/go"; do sleep 0.2; done'
    world.add(*({"id": name, "command": ["sh", "-c", held]} for name in names))
    with daemon(world, HARD, HARD) as process:
        until(lambda: list(world.statuses().values()).count("running") == AGENTS)
        told = {row["code"]: row["message"] for row in world.fairlane("status")["warnings"]}
        for word in (f"only {HARD} files", f"at most {AGENTS} agents", "not 100", "ulimit -Hn"):
            assert word in told["open_files"]
            assert word in (world.home / "daemon.log").read_text()
        findings = doctor(world)
        assert findings["open_files"]["level"] == "wrong"
        assert "LimitNOFILE=" in findings["open_files"]["hint"]
        (world.home / "go").touch()
        until(lambda: set(world.statuses().values()) == {"done"})
        assert process.poll() is None
    assert world.most_in_flight() <= AGENTS
    assert {each.outcome for name in names for each in world.attempts(name)} == {"succeeded"}
    assert "open_files" not in doctor(world), "what a dead daemon said is over"


def test_the_soft_limit_is_raised_where_the_hard_one_allows_it(world: World) -> None:
    world.policy("caps.all = 100\n")
    world.settings("[worker]\nslots = 100\n")
    with daemon(world, HARD, 4096) as process:
        soft, hard = limit_of(process.pid)
        assert (int(soft) >= 100 + AGENTS, hard) == (True, "4096")
        assert world.fairlane("status")["warnings"] == []


def test_doctor_finds_it_before_there_is_a_daemon(world: World) -> None:
    world.policy("caps.all = 100\n")
    assert "open_files" not in doctor(world, HARD), "the ten slots of the settings fit"
    world.settings("")
    assert "at most 16 agents" in doctor(world, HARD)["open_files"]["message"]
    assert "open_files" not in doctor(world, 4096)


def doctor(world: World, files: int | None = None) -> dict[str, dict[str, str]]:
    """What doctor finds, as a process that may have only so many files open."""

    def limit() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    words = [sys.executable, "-m", "fairlane", "--home", str(world.home), "--json", "doctor"]
    done = subprocess.run(
        words, capture_output=True, check=False, timeout=LIMIT_SECONDS, preexec_fn=limit
    )
    return {row["what"]: row for row in json.loads(done.stdout)["findings"]}
