"""Torture: histories from one seed after the other, until enough has happened or one breaks."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context, parent_process

from fairlane.clock import SYSTEM
from fairlane.model.record import dataclass, field
from fairlane.testing.torture.dice import Dice
from fairlane.testing.torture.faults import Rates
from fairlane.testing.torture.history import History
from fairlane.testing.torture.playing import Played, play
from fairlane.testing.torture.shrinking import SHRINK_SECONDS, shrink
from fairlane.testing.torture.stores import Make

#: How many events one history has; a short one is quickly shrunk, a long one wears things out.
LENGTHS = (700, 1_500, 3_000, 6_000)
#: How often something is said while it goes on, in seconds.
SAY_SECONDS = 5.0
DAY_SECONDS = 86_400


@dataclass(slots=True)
class Report:
    """What was done, and what broke."""

    store: str
    seed: int  # the first
    histories: int = 0
    events: int = 0
    crashes: int = 0
    virtual_seconds: float = 0.0
    seconds: float = 0.0
    replayed: int = 0  # decisions
    checked: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    failed: Played | None = None
    shortest: History | None = None
    make: Make | None = None  # of a store that has no name here

    @property
    def broken(self) -> str | None:
        """The promise that broke, in a sentence."""
        return None if self.failed is None else str(self.failed.broken)

    def take(self, played: Played) -> None:
        """Add one history."""
        self.histories += 1
        self.events += played.events
        self.crashes += played.crashes
        self.virtual_seconds += played.seconds
        self.replayed += played.replayed
        self.checked.update(played.checked)
        self.answers.update(played.answers)
        if played.broken is not None and self.failed is None:
            self.failed = played

    def line(self) -> str:
        """How far it is."""
        speed = round(self.events / self.seconds) if self.seconds else 0
        days = self.virtual_seconds / DAY_SECONDS
        return (
            f"{self.seconds:.0f} s: {self.histories} histories, {self.events:,} events,"
            f" {self.crashes:,} crashes, {days:,.0f} virtual days, {speed:,} events/s"
        )

    def lines(self) -> Iterator[str]:
        """All of it, for people."""
        yield f"store {self.store}, seeds {self.seed} to {self.seed + self.histories - 1}"
        yield self.line()
        yield f"{self.replayed:,} decisions replayed; promises, and how often each was checked:"
        for name, count in sorted(self.checked.items()):
            yield f"  {count:>12,}  {name}"
        if self.failed is None:
            yield "No promise was broken."
            return
        history = self.failed.history
        yield f"BROKEN by seed {history.seed}: {self.broken}"
        yield from (f"  {line}" for line in self.failed.said)
        shortest = self.shortest or history
        yield f"{len(history.choices)} choices, shrunk to {len(shortest.choices)}:"
        yield ""
        yield shortest.as_test(self.broken or "", f"seed_{history.seed}", self.make)


@dataclass(frozen=True, slots=True)
class Task:
    """One history to be made, by whichever process."""

    seed: int
    events: int
    store: str
    make: Make | None = None
    rates: Rates | None = None
    seconds: float | None = None  # it ends early then


def torture(
    store: str = "memory",
    seed: int = 1,
    events: int | None = None,
    *,
    seconds: float | None = None,
    jobs: int = 1,
    make: Make | None = None,
    rates: Rates | None = None,
    shrink_seconds: float = SHRINK_SECONDS,
    say: Callable[[str], None] = lambda line: None,
) -> Report:
    """Make histories until so many events have happened, or so much time is up.

    Without `events` and `seconds` it ends when a promise breaks, and not before.

    `make`: a store of your own, see `stores`; with `jobs` above 1 it must be a function of a
    module. The first history that breaks a promise ends it, and is shrunk.
    """
    report, began = Report(store, seed, make=make), SYSTEM.monotonic()
    said = 0.0
    for played in _histories(jobs, _Source(store, seed, events, seconds, make, rates)):
        report.take(played)
        report.seconds = SYSTEM.monotonic() - began
        if report.seconds - said >= SAY_SECONDS:
            said = report.seconds
            say(report.line())
        if report.failed is not None:
            break
    report.seconds = SYSTEM.monotonic() - began
    if report.failed is not None and report.failed.broken is not None:
        say(f"broken: {report.broken}; looking for a shorter history")
        history, promise = report.failed.history, report.failed.broken.promise
        report.shortest = shrink(history, promise, make, shrink_seconds)
    return report


@dataclass(slots=True)
class _Source:
    """Says which history is next, as long as there shall be one."""

    store: str
    seed: int
    events: int | None
    seconds: float | None
    make: Make | None
    rates: Rates | None
    began: float = field(default_factory=SYSTEM.monotonic)
    _given: int = 0
    _asked: int = 0  # events of those that were given

    def next(self) -> Task | None:
        """One more, unless enough is under way."""
        if self.events is not None and self._asked >= self.events:
            return None
        if self.seconds is not None and SYSTEM.monotonic() - self.began >= self.seconds:
            return None
        seed = self.seed + self._given
        length = Dice(seed, "length").one(LENGTHS)
        if self.events is not None:
            length = min(length, self.events - self._asked)
        self._given += 1
        self._asked += length
        left = None
        if self.seconds is not None:
            left = self.began + self.seconds - SYSTEM.monotonic()
        return Task(seed, length, self.store, self.make, self.rates, left)


def perform(task: Task) -> Played:
    """Make one history; in a process of its own it travels there and back."""
    end = float("inf") if task.seconds is None else SYSTEM.monotonic() + task.seconds
    return play(
        task.seed, task.events, store=task.store, make=task.make, rates=task.rates,
        over=lambda: SYSTEM.monotonic() >= end,
    )  # fmt: skip


def _end_with_parent() -> None:
    """In a process of the pool: without the one that asked, it would wait for ever."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _histories(jobs: int, source: _Source) -> Iterator[Played]:
    if jobs < 2:
        while (task := source.next()) is not None:
            yield perform(task)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), _end_with_parent) as pool:
        under_way: set[Future[Played]] = set()
        while True:
            while len(under_way) < jobs and (task := source.next()) is not None:
                under_way.add(pool.submit(perform, task))
            if not under_way:
                return
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
