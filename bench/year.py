"""A year of work in one store, as data: how large it grows, and what commands cost in it.

`python -m bench.year` writes 2,000 tasks a day, day by day, and compacts each day as a daemon does.
`--days 60 --a-day 500` is shorter. It is no part of `make bench`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from bench.homes import folder
from bench.measure import seconds, show_seconds
from fairlane.app import open_context
from fairlane.clock import FixedClock
from fairlane.engine import compaction, decisions
from fairlane.engine.end_attempt import Report
from fairlane.model.instant import DAY, minute_of
from fairlane.model.record import changed
from fairlane.service import explain, projects, pull, tasks
from fairlane.service.reports import listing, stats, status
from fairlane.store.base import Booking, Placed
from fairlane.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fairlane.engine.context import Context
    from fairlane.model.event import Event
    from fairlane.model.task import Attempt, Task
    from fairlane.store.base import Decision, Writing

START = 20_000 * DAY
PROJECTS = [f"project-{number}" for number in range(5)]
PROMPT = "Fix the build of the parser, and say in the end what was wrong with it. " * 6
QUEUED, REPEATS = 200, 15
YEAR = 365
#: Ends of months 1, 3, 6 and 12: a shorter run has them at the same parts of it.
MARKS = (30, 90, 180, YEAR)
HEAD = ("day", "tasks", "file", "lease", "status", "list", "why", "stats", "compact", "a part")


class Life(NamedTuple):
    """What the engine writes for one task from its beginning to its end."""

    task: Task
    attempt: Attempt
    events: list[Event]
    decision: Decision
    scopes: tuple[str, ...]


class Year:
    """A store that fills up day by day."""

    def __init__(self, home: Path, a_day: int) -> None:
        home.mkdir()
        (home / "policy.toml").write_text('preset = "balanced"\ncaps.all = 50\n', encoding="utf-8")
        self.clock = FixedClock(START)
        self.context = open_context(home, clock=self.clock)
        self.file, self._a_day, self.written = home / "fairlane.db", a_day, 0
        for name in PROJECTS:
            projects.add_project(self.context, name, {})
        self._life = one_life(self.context)
        waiting = [{"project": PROJECTS[n % 5], "prompt": PROMPT} for n in range(QUEUED)]
        tasks.add(self.context, waiting)
        self._held = tasks.add(self.context, [{"not_before": "2100-01-01T00:00:00Z"}])["tasks"]
        self._sizes: deque[tuple[int, int]] = deque()

    def day(self) -> None:
        """A day's work, in bulk, and its end."""
        with self.context.store.write() as tx:
            first = {name: tx.number(name, self._a_day) for name in ("seq", "fence", "decision")}
            rows = [self._copy(first, n) for n in range(self._a_day)]
            tx.insert([Placed(task) for task, _, _ in rows])
            tx.put_attempts([attempt for _, attempt, _ in rows])
            tx.log([event for _, _, events in rows for event in events])
            tx.book(self._booked([task for task, _, _ in rows]))
            self._decide(tx, first["decision"])
        self.written += self._a_day
        self.clock.at += DAY

    def _copy(self, first: dict[str, int], n: int) -> tuple[Task, Attempt, list[Event]]:
        life, seq, fence = self._life, first["seq"] + n, first["fence"] + n
        by = self.clock.at + n * DAY // self._a_day - life.task.created_at
        name, project = f"t{seq}", PROJECTS[n % 5]
        task = changed(
            life.task, id=name, seq=seq, project=project, created_at=life.task.created_at + by,
            ready_since=(life.task.ready_since or 0) + by, ended_at=(life.task.ended_at or 0) + by,
        )  # fmt: skip
        attempt = changed(
            life.attempt, task=name, lease=f"L{fence}", fence=fence, project=project,
            leased_at=life.attempt.leased_at + by, expires_at=life.attempt.expires_at + by,
            ended_at=(life.attempt.ended_at or 0) + by,
        )  # fmt: skip
        events = [
            changed(event, number=0, at=event.at + by, task=name, project=project)
            for event in life.events
        ]
        return task, attempt, events

    def _booked(self, done: Sequence[Task]) -> list[Booking]:
        counts: Counter[tuple[str, int]] = Counter()
        for task in done:
            minute = minute_of(task.ended_at or 0)
            scopes = [each.replace(PROJECTS[0], task.project) for each in self._life.scopes]
            counts.update((scope, minute) for scope in scopes)
        return [
            Booking(scope, minute, (900 * n, 100 * n, 0, 0), 4000 * n, n, n)
            for (scope, minute), n in counts.items()
        ]

    def _decide(self, tx: Writing, first: int) -> None:
        """A decision for each task; the oldest go where all take too much."""
        row = self._life.decision
        size = len(row.lanes) + len(row.rest) + len(row.plan)
        for n in range(self._a_day):
            number = first + n
            base = number if n % decisions.FULL_EVERY == 0 else self._sizes[-1][0]
            count = 0 if base == number else self._sizes.pop()[1]
            self._sizes.append((base, count + size))
            at = self.clock.at + n * DAY // self._a_day
            tx.put_decision(changed(row, number=number, at=at, base=base))
        while sum(total for _, total in self._sizes) > decisions.BYTES_MAX:
            self._sizes.popleft()
        tx.put_decision(
            changed(row, number=tx.number("decision"), base=self._sizes[-1][0], at=self.clock.at),
            self._sizes[0][0],
        )
        decisions.start_anew(tx)

    def compact(self) -> tuple[float, float]:
        """The day's compaction without its pauses; how long it took, and its longest part."""
        parts: list[float] = []
        while not parts or compaction.is_due(self.context):
            parts.append(seconds(lambda: compaction.compact(self.context, lambda: True)))
        return sum(parts), max(parts)

    def measured(self, day: int) -> tuple[str, ...]:
        """One line of the table."""
        took, longest = self.compact()
        (held,) = self._held
        asked: list[Callable[[], object]] = [
            lambda: status.status(self.context),
            lambda: listing.list_tasks(self.context, limit=50),
            lambda: explain.why(self.context, held["id"]),
            lambda: stats.stats(self.context),
        ]
        times = [median(seconds(ask) for _ in range(REPEATS)) for ask in asked]
        leases = median(self.lease() for _ in range(REPEATS))
        with_log = (self.file, self.file.with_name(f"{self.file.name}-wal"))
        size = sum(each.stat().st_size for each in with_log)
        shown = [show_seconds(each) for each in (leases, *times, took, longest)]
        return (str(day), f"{self.written:,}", f"{size / 2**20:,.0f} MiB", *shown)

    def lease(self) -> float:
        """How long a lease takes; its task is done, and another one comes."""
        found: list[str] = []

        def lease() -> None:
            found.extend(
                each["lease"]
                for each in pull.lease(self.context, limit=1, worker="bench")["leases"]
            )

        took = seconds(lease)
        pull.finish(self.context, found[0])
        tasks.add(self.context, [{"project": PROJECTS[0], "prompt": PROMPT}])
        return took


def one_life(context: Context) -> Life:
    """Add, lease, complete, and what that wrote."""
    tasks.add(context, [{"id": "model", "project": PROJECTS[0], "prompt": PROMPT}])
    lease = pull.lease(context, limit=1, worker="bench")["leases"][0]["lease"]
    pull.finish_each(context, [(lease, Report(tokens=(900, 100, 0, 0), usd=4000))])
    with context.store.read() as reading:
        task, (attempt,) = reading.tasks(["model"])["model"], reading.attempts("model")
        events, (decision,) = reading.events(task="model"), reading.decisions()
        return Life(task, attempt, events, decision, tuple(reading.usage_sums("", 0)))


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.year", description=__doc__)
    parser.add_argument("--days", type=int, default=YEAR, help="how many (365)")
    parser.add_argument("--a-day", type=int, default=2000, help="tasks a day (2,000)")
    asked = parser.parse_args(words)
    marks = {max(1, mark * asked.days // YEAR) for mark in MARKS}
    with folder() as here:
        year = Year(here / "home", asked.a_day)
        store = year.context.store
        assert isinstance(store, SqliteStore)
        print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
        for day in range(1, asked.days + 1):
            store.connection.execute("PRAGMA synchronous = OFF")
            year.day()
            if day in marks:
                store.connection.execute("PRAGMA synchronous = FULL")
                print("| " + " | ".join(year.measured(day)) + " |", flush=True)
            elif compaction.is_due(year.context):
                year.compact()
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
