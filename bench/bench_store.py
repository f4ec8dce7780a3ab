"""The store: whole lives of tasks beside peers and bare SQLite, and a million queued tasks.

Every side writes to the same disk with `synchronous = FULL`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.bare import Bare
from bench.measure import Row, median_pair, seconds, show_seconds
from bench.peers import PROMPT, peers
from bench.queues import LANES, PICKS, Queue, queue
from fairlane.app import open_context
from fairlane.engine.end_attempt import NOTHING
from fairlane.intake.fields import parse_jsonl
from fairlane.service import explain, pull, tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bench.bare import Blobs
    from bench.peers import Peer
    from fairlane.engine.context import Context

LIVES, TURNS = 20, 15  # lives in a turn
BATCH, BATCHES = 100, 9
ROUNDS, LEASES, STATUSES, WHYS = 15, 200, 11, 3
FILE_TASKS, FILES = 100_000, 3
SMALL, LARGE = 1_000, 1_000_000
POLICY = 'preset = "balanced"\n[caps]\nall = 1000\n[backpressure]\nsoft = "none"\nhard = "none"\n'


def rows() -> list[Row]:
    """Every figure of the store."""
    with folder() as here:
        found = [*lives(here)]
        found.append(added_from_a_file(here))
        with queue(here / "small", SMALL) as small, queue(here / "large", LARGE) as large:
            one_round = rounds(small, large)
            found += [one_round[0], latency(small, large)]
            found += started(small, large)
            found.append(explained(large, one_round[1]))
    return found


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on the disk, not in memory, gone afterwards."""
    here = Path(tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parent))
    try:
        yield here
    finally:
        shutil.rmtree(here)


# Whole lives.


def lives(here: Path) -> Iterator[Row]:
    """One at a time, and a hundred at a time: ours, bare, and every peer, by turns."""
    context = home(here / "lives")
    for _ in range(3):
        live(context, 1)
    bare = Bare(here / "bare.db", last_record(context))
    others = peers(here)
    ones: dict[str, Callable[[], object]] = {
        "ours": lambda: live(context, 1),
        "bare": lambda: bare.batch(1),
    }
    ones |= {peer.name: peer.life for peer in others}
    single = by_turns({name: repeated(work, LIVES) for name, work in ones.items()}, TURNS)
    single = {name: length / LIVES for name, length in single.items()}
    many: dict[str, Callable[[], object]] = {
        "ours": lambda: live(context, BATCH),
        "bare": lambda: bare.batch(BATCH),
    }
    many |= {peer.name: partial(peer.batch, BATCH) for peer in others}
    batch = by_turns(many, BATCHES)
    same_rows(context, bare)
    for peer in others:
        peer.close()
    bare.close()
    context.store.close()
    yield from beside("life of a task (add, lease, complete), one at a time", single, others, 0.6)
    what = f"the same in batches of {BATCH}"
    yield from beside(what, batch, others, 0.4)


def beside(what: str, taken: dict[str, float], others: list[Peer], share: float) -> Iterator[Row]:
    """Ours beside bare transactions and beside each peer."""
    ours = taken["ours"]
    against = f"the same writes bare {show_seconds(taken['bare'])} (decides nothing)"
    yield Row(what, show_seconds(ours), against, taken["bare"] / ours, f">= {share}")
    best = min(taken[peer.name] for peer in others)
    for peer in others:
        length = taken[peer.name]
        asked = "> 1" if share > 0.5 and peer.name == "persist-queue" else ""
        if share < 0.5 and length == best:
            asked = ">= 5"
        told = f"{peer.name} {show_seconds(length)} ({peer.lacks})"
        yield Row(what, show_seconds(ours), told, length / ours, asked)


def live(context: Context, count: int) -> None:
    """As many tasks: added, leased, completed."""
    tasks.add(context, [{"prompt": PROMPT}] * count)
    given = pull.lease(context, limit=count, worker="w")["leases"]
    pull.finish_each(context, [(each["lease"], NOTHING) for each in given])
    if len(given) != count:
        raise AssertionError(f"{len(given)} of {count} tasks were leased")


def last_record(context: Context) -> Blobs:
    """The record of the last decision, for the bare side to write the same bytes."""
    with context.store.read() as reading:
        found = reading.decisions(limit=10)[-1]
    return found.lanes, found.rest, found.plan, json.dumps(dict(found.digests))


def same_rows(context: Context, bare: Bare) -> None:
    """Both sides have written as much: as many tasks as attempts, thrice as many events."""
    with context.store.read() as reading:
        mine = sum(tally.count for tally in reading.tallies())
        events = reading.events(limit=1, last=True)[-1].number
    theirs = bare.connection.execute("SELECT count(*) FROM events").fetchone()[0]
    done = bare.connection.execute("SELECT count(*) FROM attempts WHERE ended_at").fetchone()[0]
    if events < 3 * mine or theirs != 3 * done:
        raise AssertionError("the two sides do not write the same rows")


# A file of tasks.


def added_from_a_file(here: Path) -> Row:
    """All lines of a file in one transaction, read, checked and placed; the rows alone."""
    lines = [json.dumps({"id": f"f{n}", "prompt": PROMPT}) for n in range(1, FILE_TASKS + 1)]
    path = here / "tasks.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    turn = iter(range(2 * FILES + 2))

    def ours() -> None:
        context = home(here / f"file-{next(turn)}")
        records = parse_jsonl(path.read_text(encoding="utf-8"), str(path))
        added = tasks.add(context, records)
        if len(added["tasks"]) != FILE_TASKS:
            raise AssertionError("not every line was added")
        context.store.close()

    def theirs() -> None:
        bare = Bare(here / f"file-{next(turn)}.db", (b"", b"", b"", "{}"))
        bare.add_new(FILE_TASKS)
        bare.close()

    mine, plain = median_pair(ours, theirs, FILES)
    return Row(
        f"adding {FILE_TASKS:,} tasks from a file",
        show_seconds(mine),
        f"bare inserts of the same rows in one transaction {show_seconds(plain)}",
        plain / mine,
        ">= 0.25",
    )


# A million tasks.


def rounds(small: Queue, large: Queue) -> tuple[Row, float]:
    """Look, plan and commit, 50 picks; what was taken is completed and replaced, untimed."""

    def refill() -> None:
        small.refill()
        large.refill()

    taken = by_turns({"small": small.round, "large": large.round}, ROUNDS, after=refill)
    row = Row(
        f"one round out of the store, {PICKS} picks, {LARGE:,} ready in {LANES} lanes",
        show_seconds(taken["large"]),
        f"{SMALL:,} ready in the same lanes {show_seconds(taken['small'])}",
        taken["large"] / taken["small"],
        "<= 1.5",
    )
    return row, taken["large"]


def latency(small: Queue, large: Queue) -> Row:
    """How long one `lease` of one task takes, but for one in a hundred."""
    lengths: dict[str, list[float]] = {"small": [], "large": []}
    for _ in range(LEASES):
        for name, held in (("small", small), ("large", large)):
            lengths[name].append(seconds(held.lease_one))
            held.refill()
    small_p99, large_p99 = (percentile99(lengths[name]) for name in ("small", "large"))
    return Row(
        f"lease of one task, p99 of {LEASES}, {LARGE:,} queued",
        show_seconds(large_p99),
        f"{SMALL:,} queued in the same lanes {show_seconds(small_p99)}",
        large_p99 / small_p99,
        "<= 1.5",
    )


def started(small: Queue, large: Queue) -> Iterator[Row]:
    """`fairlane status` as a process."""
    works = {
        "large": lambda: status(large),
        "small": lambda: status(small),
        "python": lambda: run("-c", "pass"),
    }
    taken = by_turns(works, STATUSES)
    what = f"`fairlane status` as a process, {LARGE:,} queued"
    ours, python, few = (taken[name] for name in ("large", "python", "small"))
    told = f"python -c pass {show_seconds(python)}"
    yield Row(what, show_seconds(ours), told, ours / python, "<= 8")
    told = f"{SMALL:,} queued in the same lanes {show_seconds(few)}"
    yield Row(what, show_seconds(ours), told, ours / few, "<= 1.5")


def explained(large: Queue, one_round: float) -> Row:
    """`why`, with every change that would start the task."""
    length = median(seconds(lambda: explain.why(large.context, large.last)) for _ in range(WHYS))
    return Row(
        f"`why` with counterfactuals, {LARGE:,} queued in {LANES} lanes",
        show_seconds(length),
        f"one round {show_seconds(one_round)}",
        length / one_round,
        "<= 100",
    )


# How it is measured.


def home(path: Path) -> Context:
    """A new home folder whose policy lets a batch run at once."""
    path.mkdir()
    (path / "policy.toml").write_text(POLICY, encoding="utf-8")
    return open_context(path)


def repeated(work: Callable[[], object], times: int) -> Callable[[], None]:
    """The same several times over."""

    def all_of_them() -> None:
        for _ in range(times):
            work()

    return all_of_them


def by_turns(
    works: Mapping[str, Callable[[], object]],
    turns: int,
    after: Callable[[], object] | None = None,
) -> dict[str, float]:
    """The median of each; all are measured in every turn, the first of which is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(turns + 1):
        for name, work in works.items():
            taken[name].append(seconds(work))
        if after is not None:
            after()
    return {name: median(lengths[1:]) for name, lengths in taken.items()}


def percentile99(lengths: list[float]) -> float:
    """The smallest that 99 of 100 do not exceed."""
    return sorted(lengths)[-(-99 * len(lengths) // 100) - 1]


def status(queue: Queue) -> None:
    """The command that people type."""
    run("-m", "fairlane", "--home", str(queue.home), "status")


def run(*arguments: str) -> None:
    """Python with these arguments, its output thrown away."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
