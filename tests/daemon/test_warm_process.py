"""Runners that are forked from a warm process are as those in a fresh Python, and as safe."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane.executors import starting
from fairlane.executors.base import Ended, Gone, Handle, Orders, Running
from fairlane.executors.process import ProcessExecutor
from fairlane.executors.runfiles import read_record
from tests.daemon.world import World, is_zombie, until

#: Of `/proc/PID/status`, what a process inherits or sets itself.
INHERITED = (
    "Umask", "Uid", "Gid", "Groups", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn",
    "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
    "Cpus_allowed", "Mems_allowed",
)  # fmt: skip
#: Of `/proc/PID/stat`, after the name: terminal, its group, scheduling.
SCHEDULED = (4, 5, 15, 16, 37, 38)


@pytest.fixture
def executor() -> Iterator[ProcessExecutor]:
    executor = ProcessExecutor()
    yield executor
    executor.close()


class Attempt:
    """One that prints a line and stays, started by this executor."""

    def __init__(
        self, executor: ProcessExecutor, folder: Path, *, warm: bool = True, **env: str
    ) -> None:
        if warm:
            executor.warm_up()
        self.executor, self.run = executor, folder / "runs" / "t1" / "1"
        self.run.mkdir(parents=True)
        argv = ("sh", "-c", "echo here; exec sleep 600")
        self.handle = executor.launch(Orders(self.run, argv, self.run, {**os.environ, **env}))
        until(lambda: executor.output_size(self.run, "stdout"))
        told = read_record(self.run / "runner.json") or {}
        self.runner, self.agent = (int(str(told[name])) for name in ("pid", "agent_pid"))
        assert executor.poll(self.handle) == Running()

    @property
    def parent(self) -> int:
        return int(stat(self.runner)[1])

    @property
    def warm(self) -> int:
        """The warm process that has forked its runner."""
        assert self.parent != os.getpid()
        return self.parent

    def ends(self) -> None:
        self.executor.stop(self.handle)
        until(lambda: isinstance(self.executor.poll(self.handle), Ended))


def stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def shown(pid: int, run: Path) -> dict[str, object]:
    """What a process shows of itself, without what differs between any two."""
    proc, at = Path(f"/proc/{pid}"), stat(pid)
    lines = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines())
    links = {name: str((proc / name).readlink()) for name in ("cwd", "root", "exe")}
    texts = {
        name: (proc / name).read_bytes().replace(os.fsencode(run), b"RUN")
        for name in ("environ", "cmdline", "comm", "limits", "cgroup", "oom_score_adj")
    }
    return {
        **{name: lines[name] for name in INHERITED},
        "files": {int(file.name): shown_file(proc, file, run) for file in (proc / "fd").iterdir()},
        "leads its group and session": [int(at[2]) == pid, int(at[3]) == pid],
        "scheduled": [at[number] for number in SCHEDULED],
        **{name: path.replace(str(run), "RUN") for name, path in links.items()},
        **texts,
    }


def shown_file(proc: Path, file: Path, run: Path) -> tuple[str, str]:
    """What an open file is, and how it is open."""
    lines = (proc / "fdinfo" / file.name).read_text().splitlines()
    flags = next(line for line in lines if line.startswith("flags:"))
    return re.sub(r"\d+", "N", str(file.readlink()).replace(str(run), "RUN")), flags


def test_a_forked_runner_and_its_agent_show_what_fresh_ones_show(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    fresh, forked = Attempt(executor, tmp_path / "a", warm=False), Attempt(executor, tmp_path / "b")
    assert fresh.parent == os.getpid() != forked.parent
    for name in ("runner", "agent"):
        found = [shown(getattr(each, name), each.run) for each in (fresh, forked)]
        assert found[0] == found[1]
    for each in (fresh, forked):
        each.ends()


def memory(pid: int) -> bytes:
    """What is in the writable memory of a process."""
    parts = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as file:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(each, 16) for each in line.split()[0].split("-"))
            if " rw" in line and "[v" not in line:
                file.seek(begin)
                parts.append(file.read(end - begin))
    return b"".join(parts)


def test_a_secret_of_one_attempt_is_in_no_other_and_not_in_the_warm_process(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    secret = os.urandom(16).hex()
    first = Attempt(executor, tmp_path / "a", TOKEN=secret)
    second = Attempt(executor, tmp_path / "b")
    assert first.warm == second.warm
    found = [secret.encode() in memory(pid) for pid in (first.runner, first.warm, second.runner)]
    assert found == [True, False, False]
    first.ends()
    second.ends()


def test_runners_survive_the_warm_process_and_the_next_launch_works(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    first = Attempt(executor, tmp_path / "a")
    warm = first.warm
    os.kill(warm, signal.SIGKILL)
    until(lambda: first.parent != warm)
    second = Attempt(executor, tmp_path / "b", warm=False)
    assert second.parent == os.getpid()  # in a fresh Python
    third = Attempt(executor, tmp_path / "c")
    assert third.warm != warm
    assert executor.poll(first.handle) == Running()
    for each in (first, second, third):
        each.ends()


def test_a_warm_process_that_hangs_is_replaced(
    executor: ProcessExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "ANSWER_SECONDS", 5.0)
    first = Attempt(executor, tmp_path / "a")
    warm = first.warm
    os.kill(warm, signal.SIGSTOP)
    second = Attempt(executor, tmp_path / "b")
    assert second.parent == os.getpid()
    assert is_zombie(warm)
    third = Attempt(executor, tmp_path / "c")
    assert third.warm != warm
    for each in (first, second, third):
        each.ends()


def test_a_changed_environment_or_limit_reaches_the_next_runner(
    executor: ProcessExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Attempt(executor, tmp_path / "a").ends()
    monkeypatch.setenv("FAIRLANE_TEST_CHANGED", "yes")
    changed = Attempt(executor, tmp_path / "b", warm=False)
    assert b"FAIRLANE_TEST_CHANGED=yes" in Path(f"/proc/{changed.runner}/environ").read_bytes()
    changed.ends()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        limited = Attempt(executor, tmp_path / "c")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert limited.warm
    assert resource.prlimit(limited.runner, resource.RLIMIT_NOFILE) == (soft - 1, hard)
    limited.ends()


def test_one_that_never_forks_is_not_started_for_ever(
    executor: ProcessExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where something on the machine ends a process that forks."""
    starts = tmp_path / "starts"
    fails = f"""
import os, stat
if stat.S_ISSOCK(os.fstat(0).st_mode):
    open({str(starts)!r}, "a").write("x")
    os._exit(1)
"""
    monkeypatch.setattr(starting, "RUN", (*starting.RUN[:-1], fails + starting.RUN[-1]))
    for number in range(5):
        attempt = Attempt(executor, tmp_path / str(number))
        assert attempt.parent == os.getpid()
        attempt.ends()
    assert starts.read_text() == "xxx"


PARENT = """
import os, sys
from pathlib import Path
from fairlane.executors.process import ProcessExecutor
from tests.daemon.test_warm_process import Attempt
attempt = Attempt(ProcessExecutor(), Path(sys.argv[1]))
print(attempt.warm, flush=True)
os.kill(os.getpid(), 9)
"""


def test_it_ends_with_a_launcher_that_is_killed_and_its_runners_do_not(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PARENT, str(tmp_path)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
    warm, handle = int(done.stdout), Handle(tmp_path / "runs" / "t1" / "1")
    until(lambda: is_zombie(warm))
    executor = ProcessExecutor()
    assert executor.adopt(handle.run) is not None
    executor.stop(handle)
    state = until(lambda: (found := executor.poll(handle)) != Running() and found)
    assert state != Gone()
    assert state.exit.stopped == "stop"


@pytest.mark.slow
def test_a_daemon_and_its_warm_process_are_killed_and_all_is_adopted(world: World) -> None:
    names = ["a", "b", "c", "d"]
    world.add(*map(world.waiting, names[:2]))
    daemon = world.up()
    for name in names[:2]:
        world.started(name)
    runner = world.runner("a")["pid"]
    warm = int(stat(runner)[1])
    assert int(stat(warm)[1]) == daemon
    world.kill(warm)
    world.add(*map(world.waiting, names[2:]))
    for name in names[2:]:
        world.started(name)
    world.kill(daemon)
    world.let_go("a", "c")
    until(lambda: is_zombie(runner))
    world.up()
    world.let_go(*names)
    until(lambda: world.statuses() == dict.fromkeys(names, "done"))
    assert world.mark_counts() == {"start": 4, "end": 4}
    assert [len(world.attempts(name)) for name in names] == [1, 1, 1, 1]
    assert world.processes() == []
