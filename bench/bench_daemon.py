"""The daemon: from `add` to a started process, what it costs when idle or with a long queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep

from bench.homes import POLICY, daemon, folder, home, run
from bench.measure import LIFE, Row, seconds, show_seconds, spent_in
from bench.queues import queue
from bench.sizes import Sizes
from fairlane.app import open_context
from fairlane.clock import SystemClock
from fairlane.engine import decisions
from fairlane.engine.context import Context, Facts
from fairlane.engine.end_attempt import NOTHING
from fairlane.engine.look.planned import look_and_plan
from fairlane.engine.look.workers import Asker
from fairlane.engine.round import commit
from fairlane.planner import lanes as planner
from fairlane.service import pull, tasks

SETTLED_SECONDS = 0.1
#: What has come up uses less than this share of a core.
QUIET_SHARE = 0.03
_NO_SERVER = "--no-server"


def rows(sizes: Sizes) -> list[Row]:
    """Every figure of the daemon."""
    with folder() as here:
        home(here / "small", POLICY).store.close()
        ours, bare = to_started(here / "small", sizes)
        return [
            start_row(ours, bare),
            *life(home(here / "life"), ours, sizes),
            idle(here / "small", sizes),
            memory(here / "long", here / "small", sizes),
        ]


# From `add` to a started process.


def to_started(place: Path, sizes: Sizes) -> tuple[float, float]:
    """Through an idle daemon, and from a bare subprocess."""
    ours, bare = [], []
    with daemon(place, _NO_SERVER):
        context = open_context(place)
        for number in range(sizes.starts):
            sleep(SETTLED_SECONDS)  # then the daemon is idle, and its next runner is ready
            ours.append(started(place, partial(add, context, number)))
            bare.append(started(place, lambda mark: run(*script(mark))))
        context.store.close()
    return median(ours), median(bare)


def start_row(ours: float, bare: float) -> Row:
    what = "add to process started, daemon idle, p50 (ratio: ms more)"
    told = f"bare subprocess {show_seconds(bare)}"
    return Row(what, show_seconds(ours), told, (ours - bare) * 1000, "<= 30")


def started(place: Path, start: Callable[[Path], object]) -> float:
    """Seconds from the call to the moment that the process writes down."""
    mark = place / "mark"
    mark.unlink(missing_ok=True)
    begun = SystemClock().now()
    start(mark)
    end = monotonic() + 60
    while not (mark.exists() and mark.read_text().strip()):
        assert monotonic() < end, "it did not start"
        sleep(0.002)
    return int(mark.read_text()) / 1e9 - begun / 1e6


def script(mark: Path) -> list[str]:
    return ["sh", "-c", f'date +%s%N > "{mark}.new"; mv "{mark}.new" "{mark}"']


def add(context: Context, number: int, mark: Path) -> None:
    record = {"id": f"s{number}", "agent": "shell", "command": script(mark)}
    tasks.add(context, [record])


# Where the time of one task goes.


def life(context: Context, whole: float, sizes: Sizes) -> Iterator[Row]:
    """The parts in this process; what is left of the whole is the start."""
    turns = [parts(context, number) for number in range(sizes.starts + 1)][1:]
    context.store.close()
    found = {name: median(turn[name] for turn in turns) for name in turns[0]}
    found["start"] = max(0.0, whole - sum(found.values()))
    total = sum(found.values())
    told = f"all of it, from `add` to a started process {show_seconds(total)}"
    for name, took in found.items():
        yield Row(LIFE + name, show_seconds(took), told, took / total)


def parts(context: Context, number: int) -> dict[str, float]:
    """One task is added, planned and leased, step by step."""
    record = {"id": f"p{number}", "agent": "shell", "command": ["true"]}
    added = seconds(lambda: tasks.add(context, [record]))
    with spent_in(planner, "plan") as planned:
        begun = perf_counter()
        with context.store.read() as reading:
            policy, now = context.policy(), context.now()
            found = look_and_plan(context, reading, policy, now, Asker("w"), facts=Facts())
        looked = perf_counter() - begun
    with spent_in(decisions, "record") as recorded:
        begun = perf_counter()
        with context.store.write() as tx:
            committed = commit(context, tx, found)
        written = perf_counter() - begun
    ((_, attempt),) = committed.started
    pull.finish_each(context, [(attempt.lease, NOTHING)])
    return {
        "add": added,
        "look": looked - planned.seconds,
        "plan": planned.seconds,
        "commit": written - recorded.seconds,
        "record": recorded.seconds,
    }


# What it costs.


def idle(place: Path, sizes: Sizes) -> Row:
    """Processor time of the daemon and of its server while nothing happens."""
    with daemon(place) as pid:
        quiet(pid, sizes)
        before = spent(pid)
        sleep(sizes.idle_seconds)
        used = spent(pid) - before
    share = used / sizes.idle_seconds * 100
    what = "an idle daemon with server (ratio: per cent of a core)"
    return Row(what, f"{share:.2f} %", "one core", share, "<= 0.3")


def quiet(pid: int, sizes: Sizes) -> None:
    """Wait until what has just been started is up: it works no more."""
    end = monotonic() + 60
    used, before = 1.0, 0.0
    while used > QUIET_SHARE * sizes.quiet_seconds:
        assert monotonic() < end, "the daemon does not become quiet"
        before = spent(pid)
        sleep(sizes.quiet_seconds)
        used = spent(pid) - before


def memory(long: Path, empty: Path, sizes: Sizes) -> Row:
    """How much more memory a daemon takes when tasks are queued behind a full cap."""
    with queue(long, sizes.long, policy="caps.all = 0\n"):
        pass
    with daemon(empty, _NO_SERVER) as pid:
        quiet(pid, sizes)
        base = resident(pid)
    with daemon(long, _NO_SERVER) as pid:
        quiet(pid, sizes)
        found = resident(pid)
    more = (found - base) / 2**20
    what = f"memory of the daemon, {sizes.long:,} queued (ratio: MiB more)"
    told = f"empty queue {base / 2**20:.0f} MiB"
    return Row(what, f"{found / 2**20:.0f} MiB", told, more, "<= 16")


def children(pid: int) -> list[int]:
    """The processes that this one has started, and theirs."""
    direct = [
        int(each)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for each in (task / "children").read_text().split()
    ]
    return direct + [each for child in direct for each in children(child)]


def spent(pid: int) -> float:
    """Seconds of processor time of all threads of a process and of those that it has started."""
    threads = (
        task / "schedstat"
        for each in (pid, *children(pid))
        for task in Path(f"/proc/{each}/task").iterdir()
    )
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def resident(pid: int) -> int:
    """Bytes that are its own: the file's pages are everybody's."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0
