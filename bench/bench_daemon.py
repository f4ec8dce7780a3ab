"""The daemon: how fast tasks start and end, what it costs when idle or with a long queue."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from bench.measure import Row, seconds
from bench.queues import queue
from fairlane.app import open_context
from fairlane.clock import SystemClock
from fairlane.runtime.lock import holder
from fairlane.service import tasks

STARTS, SETTLED_SECONDS = 25, 0.1
IDLE_SECONDS = 10.0
LONG = 1_000_000
MANY, SLOTS = 2_000, 8
_TICKS = os.sysconf("SC_CLK_TCK")


def rows() -> list[Row]:
    """Questions about a daemon that has nothing to do, and one about one that is never idle."""
    here = Path(tempfile.mkdtemp(prefix="bench-daemon-", dir=Path.cwd()))
    try:
        idle = here / "small"
        return [*small(idle), long_queue(here / "long", idle), many(here / "many")]
    finally:
        shutil.rmtree(here, ignore_errors=True)


def small(home: Path) -> Iterator[Row]:
    home.mkdir()
    with daemon(home) as pid:
        context = open_context(home)
        ours, bare = [], []
        for number in range(STARTS):
            sleep(SETTLED_SECONDS)  # then the daemon is idle, and its next runner is ready
            ours.append(started(home, lambda mark, n=number: add(context, mark, n)))
            bare.append(started(home, lambda mark: subprocess.run(script(mark), check=True)))
        more = (median(ours) - median(bare)) * 1000
        figures = f"{median(ours) * 1000:.0f} ms", f"bare subprocess {median(bare) * 1000:.0f} ms"
        yield Row(
            "add to process started, daemon idle, p50 (ratio: ms more)", *figures, more, "<= 50"
        )
        sleep(2.0)
        share = idle_share(pid)
        what = "an idle daemon (ratio: per cent of a core)"
        yield Row(what, f"{share:.2f} %", "one core", share, "<= 0.5")


def long_queue(home: Path, empty: Path) -> Row:
    """How much more memory a daemon takes when a million tasks are queued behind a full cap."""
    with queue(home, LONG):
        pass
    (home / "policy.toml").write_text("caps.all = 0\n", encoding="utf-8")
    with daemon(empty) as pid:
        sleep(2.0)
        base = resident(pid)
    with daemon(home) as pid:
        sleep(4.0)
        found = resident(pid)
    more = (found - base) / 2**20
    what = f"memory of the daemon, {LONG:,} queued (ratio: MiB more)"
    return Row(
        what, f"{found / 2**20:.0f} MiB", f"empty queue {base / 2**20:.0f} MiB", more, "<= 64"
    )


def many(home: Path) -> Row:
    """How many tasks that do nothing end in a second, every slot in use all the time."""
    home.mkdir()
    (home / "fairlane.toml").write_text(f"[worker]\nslots = {SLOTS}\n", encoding="utf-8")
    (home / "policy.toml").write_text(f"caps.all = {SLOTS}\n", encoding="utf-8")
    command = ["true"]
    records = [{"id": f"t{n}", "agent": "shell", "command": command} for n in range(MANY)]
    tasks.add(open_context(home), records)
    words = [sys.executable, "-m", "fairlane", "--home", str(home), "run", "--until-idle"]
    ours = MANY / seconds(lambda: subprocess.run(words, check=True, capture_output=True))
    what = f"{MANY:,} tasks `true` through `fairlane run`, {SLOTS} slots (ratio: of its rate)"
    figure = f"{ours:.0f} a second"
    if shutil.which("parallel") is None:
        return Row(what, figure, "GNU parallel is not installed here")
    words = ["parallel", "--will-cite", "--jobs", str(SLOTS), "--joblog", str(home / "log")]
    given = "true\n" * MANY
    theirs = MANY / seconds(lambda: subprocess.run(words, input=given, text=True, check=True))
    peer = f"GNU parallel with a job log (no retry, nothing synced) {theirs:.0f} a second"
    return Row(what, figure, peer, ours / theirs, ">= 0.4")


def started(home: Path, start: object) -> float:
    """Seconds from the call to the moment that the process writes down."""
    mark = home / "mark"
    mark.unlink(missing_ok=True)
    begun = SystemClock().now()
    start(mark)  # type: ignore[operator]
    end = monotonic() + 20
    while not (mark.exists() and mark.read_text().strip()):
        assert monotonic() < end, "it did not start"
        sleep(0.002)
    return int(mark.read_text()) / 1e9 - begun / 1e6


def script(mark: Path) -> list[str]:
    return ["sh", "-c", f'date +%s%N > "{mark}.new"; mv "{mark}.new" "{mark}"']


def add(context: object, mark: Path, number: int) -> None:
    record = {"id": f"s{number}", "agent": "shell", "command": script(mark)}
    tasks.add(context, [record])  # type: ignore[arg-type]


@contextmanager
def daemon(home: Path) -> Iterator[int]:
    words = [sys.executable, "-m", "fairlane", "--home", str(home)]
    process = subprocess.Popen([*words, "up"], stderr=subprocess.DEVNULL)
    try:
        while (lock := holder(home)) is None or lock["pid"] != process.pid:
            sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def idle_share(pid: int) -> float:
    """Per cent of a core over some seconds."""
    before = spent(pid)
    sleep(IDLE_SECONDS)
    return (spent(pid) - before) / _TICKS / IDLE_SECONDS * 100


def spent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def resident(pid: int) -> int:
    """Bytes that are its own: the file's pages are everybody's."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0
