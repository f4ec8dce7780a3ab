"""No room at launch is nobody's failure: the queue says what is missing, waits, and goes on."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Ending
from fairlane.engine.lease_document import lease_documents, read_leases
from fairlane.executors import runner
from fairlane.executors.base import Ended, Handle, Orders
from fairlane.executors.process import ProcessExecutor, orders_text
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.model.event import Happening
from fairlane.runtime.ending import ending_of
from fairlane.runtime.launch import LaunchFailed, host_of, launch
from fairlane.runtime.watch import running_attempt
from tests.daemon import conftest as daemons
from tests.daemon.world import World, is_zombie, until
from tests.faults.places import small_disk
from tests.workspaces.yard import commit, make_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
world = daemons.world

#: One attempt alone may fail; waits are short.
RULES = """
retry.max_attempts = 1
retry.base = "0s"
cooldown.base = "50ms"
cooldown.exponent_max = 1
breaker.launch_failures = "none"
"""
#: A runner that does not try for a minute to say how it ended.
IMPATIENT = f"""
import sys; sys.path.append({str(Path(runner.__file__).parents[1])!r})
import runner; runner.files.WRITE_SECONDS = 0.0; sys.exit(runner.main())
"""


@contextmanager
def daemon(world: World) -> Iterator[None]:
    """A daemon of this home, gone with all that it started before its disks are."""
    pid = world.up()
    try:
        yield
    finally:
        world.kill(pid)
        for each in world.processes():
            with suppress(ProcessLookupError):
                world.kill(each)


def use_up(disk: Path) -> Path:
    """No byte more can be written."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


def use_up_files(disk: Path, left: int = 0) -> list[Path]:
    """So many files can be made, and no more."""
    made: list[Path] = []
    with suppress(OSError):
        while True:
            file = disk / f"ballast{len(made)}"
            file.touch()
            made.append(file)
    for _ in range(left):
        made.pop().unlink()
    return made


def outcomes(world: World, *names: str) -> list[str | None]:
    return [each.outcome for name in names for each in world.attempts(name)]


def waits_for_room(world: World, *names: str) -> str:
    """Each was tried more often than it may fail; what the last attempt says."""
    until(lambda: all(len(world.attempts(name)) > 2 for name in names))
    ended = [each for name in names for each in world.attempts(name) if each.outcome]
    assert {each.outcome for each in ended} == {"environment"}, ended
    assert "parked" not in world.statuses().values()
    return str(ended[-1].detail)


def goes_on(world: World, *names: str) -> None:
    """All is done by itself, and nobody has failed."""
    until(lambda: set(world.statuses().values()) == {"done"})
    assert set(outcomes(world, *names)) == {"environment", "succeeded"}


def test_a_disk_on_which_no_file_can_be_made_parks_nobody(world: World) -> None:
    world.policy(RULES)
    names = [f"t{number}" for number in range(6)]
    with small_disk(world.home / "runs", "1m", inodes=400) as disk:
        made = use_up_files(disk)
        world.add(*({"id": name, "command": ["true"]} for name in names))
        with daemon(world):
            said = waits_for_room(world, *names)
            assert str(disk) in said
            assert "inode" in said
            for file in made:
                file.unlink()
            goes_on(world, *names)


@pytest.mark.parametrize("size", ["kilobytes", "files"])
def test_a_full_disk_of_worktrees_parks_nobody(world: World, tmp_path: Path, size: str) -> None:
    repo = make_repository(tmp_path / "repo")
    (repo / "large").write_bytes(os.urandom(300_000))
    commit(repo, "large")
    world.policy(RULES)
    world.fairlane("project", "add", "web", "--repo", str(repo))
    with small_disk(tmp_path / "disk", "1m", inodes=100) as disk:
        world.settings(f'[workspaces]\nfolder = "{disk}"\n')
        made = use_up_files(disk, left=4) if size == "files" else [use_up(disk)]
        if size == "kilobytes":
            os.truncate(made[0], 900_000)  # a worktree can be begun, and not finished
        world.add({"id": "a", "project": "web", "command": ["test", "-f", "large"]})
        with daemon(world):
            said = waits_for_room(world, "a")
            assert str(disk / "web" / "a") in said
            assert "no room" in said
            for file in made:
                file.unlink()
            goes_on(world, "a")
            assert (disk / "web" / "a" / "large").stat().st_size == 300_000


def test_a_direct_start_without_room_is_no_failure(world: World) -> None:
    world.policy(RULES + 'capacity.mode = "direct"\n')
    with small_disk(world.home / "runs", "100k") as disk:
        use_up(disk)
        world.fairlane("add", "words", "--id", "a", "--agent", "demo")
        (attempt,) = world.attempts("a")
        assert (attempt.outcome, world.statuses()["a"]) == ("environment", "queued")
        assert attempt.detail == f"no space left on the disk of {disk / 'a' / '1'}"


# What a runner says that lacks something, at each step of its way


def orders_for(folder: Path, *argv: str) -> bytes:
    return orders_text(Orders(folder, argv, Path("/"), dict(os.environ)))


def processes(folder: Path) -> list[int]:
    """What is left of a run."""
    return [pid for pid in runner.marked(str(folder)) if not is_zombie(pid)]


def run(folder: Path, *, files: int | None = None) -> None:
    """One runner from its orders to its end; `files`: as many as it may have open."""

    def limit() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPATIENT], input=orders_for(folder, "true"),
        check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit,
    )  # fmt: skip
    assert processes(folder) == []


def taken_in(world: World, folder: Path) -> Ending:
    """What the daemon makes of it."""
    with world.context() as context:
        (lease,) = open_leases(context)
        lease["executor"] = "process"
        host = host_of(context)
        return ending_of(host, running_attempt(host, lease, Handle(folder)))


def open_leases(context: Context) -> list[LocalLeaseDocument]:
    """The documents of what was leased, by whatever executor."""
    with context.store.read() as reading:
        rows = [(reading.tasks([row.task])[row.task], row) for row in reading.open_attempts()]
        leases = read_leases(reading, rows)
    return lease_documents(context, context.policy(), leases)


def has_ended(executor: ProcessExecutor, handle: Handle) -> bool:
    return isinstance(executor.poll(handle), Ended)


def leased(world: World) -> None:
    world.add({"id": "a", "command": ["true"]})
    world.fairlane("lease")


def check(ends: list[Ending], missing: str) -> None:
    """First the environment, then a success, and never a failure."""
    found = [each.happening for each in ends]
    first = found.index(Happening.SUCCEEDED)
    assert first > 2
    assert set(found[:first]) == {Happening.ENVIRONMENT}, ends
    assert set(found[first:]) == {Happening.SUCCEEDED}, ends
    assert all(missing in each.report.detail for each in ends[:first]), ends


def test_a_runner_on_a_disk_without_room_fails_nobody(world: World, tmp_path: Path) -> None:
    leased(world)
    ends = []
    for left in range(9):
        with small_disk(tmp_path / f"disk{left}", "1m", inodes=40) as disk:
            folder = disk / "run"
            folder.mkdir()
            use_up_files(disk, left)
            run(folder)
            ends.append(taken_in(world, folder))
    check(ends, "inode")


def test_a_runner_that_cannot_watch_its_agent_ends_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m", inodes=40) as disk:
        folder = disk / "run"
        folder.mkdir()
        use_up_files(disk, left=2)  # for the logs alone
        orders = json.loads(orders_for(folder, "sleep", "60"))
        told = runner.Runner(str(folder), orders).run()
        assert told == {
            "launch_error": f"{folder / 'runner.json.new'}: No space left on device",
            "errno": errno.ENOSPC,
            "environment": True,
        }
        assert processes(folder) == []


def test_a_runner_that_may_not_open_a_file_fails_nobody(world: World, tmp_path: Path) -> None:
    leased(world)
    ends = []
    for files in range(7, 21):
        folder = tmp_path / f"run{files}"
        folder.mkdir()
        run(folder, files=files)
        ends.append(taken_in(world, folder))
    check(ends, "files are open")


@contextmanager
def files_left(count: int) -> Iterator[None]:
    """This process can open so many files, and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("warm", [False, True])
def test_a_launch_that_may_not_open_a_file_fails_nobody(world: World, warm: bool) -> None:
    world.add({"id": "a", "command": ["true"]})
    found: list[str] = []
    said: list[str] = []
    executor = ProcessExecutor()
    with world.context() as context:
        context.executors["process"] = executor
        host = host_of(context)
        (lease,) = host.port.lease().documents
        run = world.home / "runs" / "a" / "1"
        if warm:
            with files_left(0):  # the first launch has no runner that waits for it
                executor.warm_up()
        for count in range(14):
            with files_left(count):
                try:
                    handle = launch(host, lease)
                    found.append("")
                except LaunchFailed as error:
                    found.append(error.error_code)
                    said.append(error.message)
                    continue
            until(partial(has_ended, executor, handle))
            (run / "exit.json").unlink()
    executor.close()
    assert found[0] == "environment"
    assert found[-1] == ""
    assert set(said) == {"too many files are open in one process"}
    assert sorted(found, reverse=True) == found
