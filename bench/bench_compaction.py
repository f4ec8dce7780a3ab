"""Compaction beside a working daemon: how long a lease takes meanwhile.

Calls come at fixed times, whether the last one is over or not. So a long pause counts for every
call that would have come in it, not for one.
"""

from __future__ import annotations

from time import perf_counter, sleep
from typing import TYPE_CHECKING

from bench.homes import POLICY, daemon, folder, home
from bench.measure import Row, percentile99, show_seconds
from bench.queues import CHUNK, plenty_of_memory
from fairlane.engine.end_attempt import NOTHING
from fairlane.model.event import Event
from fairlane.model.instant import DAY, SECOND
from fairlane.model.record import changed
from fairlane.model.task import Attempt, Status, Task
from fairlane.service import pull, tasks
from fairlane.store.base import Placed

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.sizes import Sizes
    from fairlane.engine.context import Context

#: Between two calls, and how many tasks the daemon has at once.
PACE_SECONDS, SLOTS = 0.1, 2
SETTINGS = f"[worker]\nslots = {SLOTS}\n"
KEEP = 1  # days
#: Tasks for the daemon while it is measured.
WORK = 3_000
SHELL = {"agent": "shell", "command": ["sleep", "0.2"]}
KINDS = ("added", "leased", "succeeded")
#: A compaction that takes longer is stuck.
PATIENCE_SECONDS = 600


def rows(sizes: Sizes) -> list[Row]:
    """One figure."""
    with folder() as here:
        context = home(here / "home", f'{POLICY}[history]\nkeep = "{KEEP}d"\n', SETTINGS)
        finished(context, sizes.finished)
        compacted(context, context.now())
        tasks.add(context, [SHELL] * min(WORK, sizes.finished))
        with daemon(context.home, "--no-server"):
            alone = calls(context, lambda count: count >= sizes.leases)
            compacted(context, 0)
            begun = perf_counter()
            beside = calls(context, lambda count: count >= sizes.leases and is_over(context, begun))
        with context.store.read() as reading:
            (event,) = reading.events(kind="compacted")
        context.store.close()
    if event.data["tasks"] != sizes.finished:
        raise AssertionError(f"compacted were {event.data}")
    few, many = percentile99(alone), percentile99(beside)
    what = f"lease p99 while {sizes.finished:,} finished tasks are compacted, daemon at work"
    told = f"the same daemon without {show_seconds(few)}"
    return [Row(what, show_seconds(many), told, many / few, "<= 3")]


def finished(context: Context, count: int) -> None:
    """Tasks that were done long ago, each with its attempt and its events."""
    at = context.now() - 3 * KEEP * DAY
    lasted = at + SECOND
    task = Task("", agent="shell", prompt="Fix the build", status=Status.DONE, attempts=1)
    task = changed(task, created_at=at, ready_since=at, ended_at=lasted)
    with plenty_of_memory(context.store):
        for start in range(0, count, CHUNK):
            numbers = range(start, min(start + CHUNK, count))
            with context.store.write() as tx:
                seq, fence = (tx.number(name, len(numbers)) for name in ("seq", "fence"))
                old = [changed(task, id=f"old{n}", seq=seq + n - start) for n in numbers]
                tx.insert([Placed(each) for each in old])
                tx.put_attempts(
                    [
                        Attempt(
                            f"Lold{n}", f"old{n}", "default", "code", "shell", 1,
                            fence + n - start, "w", at, lasted, started_at=at, ended_at=lasted,
                            outcome="succeeded",
                        )
                        for n in numbers
                    ]
                )  # fmt: skip
                kinds = ((each.id, kind) for each in old for kind in KINDS)
                tx.log([Event(0, at, kind, name, "default") for name, kind in kinds])


def compacted(context: Context, at: int) -> None:
    """Compaction was done at this time; it is due a day later."""
    with context.store.write() as tx:
        tx.put_value("compacted_at", at)


def is_over(context: Context, begun: float) -> bool:
    """Whether the daemon has compacted since."""
    if perf_counter() - begun > PATIENCE_SECONDS:
        raise AssertionError("the daemon does not compact")
    with context.store.read() as reading:
        return bool(reading.value("compacted_at"))


def calls(context: Context, is_enough: Callable[[int], bool]) -> list[float]:
    """How long each lease took, from the time at which it was to come."""
    lengths: list[float] = []
    begin = perf_counter()
    while not is_enough(len(lengths)):
        due = begin + len(lengths) * PACE_SECONDS
        sleep(max(0.0, due - perf_counter()))
        given = pull.lease(context, limit=1, worker="bench")["leases"]
        lengths.append(perf_counter() - due)
        pull.finish_each(context, [(each["lease"], NOTHING) for each in given])
        tasks.add(context, [SHELL] * len(given))
        if not given:
            raise AssertionError("nothing was leased")
    return lengths
