"""One of many processes that work on one store at once: `python -m tests.faults.crowd ROLE HOME …`.

Each says on standard output what was promised to it: what it added, what it completed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from fairlane.app import open_context
from fairlane.engine import compaction
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Report
from fairlane.model.errors import FairlaneError, TryLater
from fairlane.model.task import Status
from fairlane.service import policies, queue, tasks
from fairlane.store.base import Filter
from tests import holder

PROJECTS = ("a", "b", "c")
POLICY = """
preset = "balanced"
caps."all" = 6
caps."kind:review" = 2
caps."project:*" = 4
lease.ttl = "3s"
retry.base = "0s"
cooldown.base = "0s"
breaker.half_open_after = "none"
"""
CHANGES = ("caps.all=3", "caps.all=9", "caps.kind:review=1", "caps.kind:review=4",
           "caps.project:*=2", "caps.project:*=5", "overdue.after=1s", "score.age_from=created",
           "overdue.after=24h", "score.age_from=ready")  # fmt: skip
SCOPES = ("all", "project:a", "project:b", "kind:review", "kind:code")
OUTCOMES = ("failed", "released", "environment", "throttled", "launch_failed")
PAUSE = 0.005


def say(*words: object) -> None:
    print(*words, flush=True)


class RunningAttempt:
    """A context, chance, and the wish to go on until everything is done."""

    def __init__(self, home: Path, seed: int, total: int) -> None:
        self.context: Context = open_context(home)
        self.chance = random.Random(seed)
        self.total = total

    def over(self) -> bool:
        """Whether everything was added, and has ended."""
        with self.context.store.read() as reading:
            tallies = reading.tallies()
        ended = sum(each.count for each in tallies if each.status.final)
        return ended == self.total

    def version(self) -> int:
        with self.context.store.read() as reading:
            return reading.mark().version

    def rounds(self) -> Iterator[None]:
        """Turns until all is over; each begins when the store has changed, or after a moment."""
        seen = 0
        while not self.over():
            yield
            version = self.version()
            if version == seen:
                Event().wait(PAUSE)
            seen = version

    # Roles

    def add(self) -> None:
        """A share of all tasks, in batches: some with locks, groups, needs."""
        name, left = f"s{self.chance.randrange(10**9)}", self.total // 2
        last = ""
        while left:
            count = min(left, self.chance.randint(1, 25))
            batch = [self.record(f"{name}-{left - n}", last) for n in range(count)]
            with forgiving():
                told = tasks.add(self.context, batch)["tasks"]
                say("added", *(row["id"] for row in told))
                left, last = left - count, told[-1]["id"]

    def record(self, task: str, last: str) -> dict[str, Any]:
        chance = self.chance
        found: dict[str, Any] = {"id": task, "project": chance.choice(PROJECTS)}
        found["kind"] = chance.choice(("code", "code", "review"))
        if chance.random() < 0.15:
            found["locks"] = [chance.choice("xyz")]
        if chance.random() < 0.1:
            found |= {"group": chance.choice(("g", "h")), "parallel": False}
        if last and chance.random() < 0.05:
            found["needs"] = [last]
        return found

    def work(self) -> None:
        """Lease, and end what was leased in every way there is."""
        for _ in self.rounds():
            with forgiving():
                limit = self.chance.choice((1, 2, 8))
                told = holder.lease(self.context, limit, worker=f"w{self.chance.randrange(9)}")
                self.end([each["lease"] for each in told["leases"]])

    def end(self, held: list[str]) -> None:
        chance, told = self.chance, Report(tokens=(self.chance.randrange(1000), 5, 0, 0), usd=3)
        if len(held) > 1 and chance.random() < 0.4:
            self.completed(held, told)
            return
        for lease in held:
            what = chance.random()
            with forgiving():
                if what < 0.1:
                    holder.heartbeat(self.context, lease)
                    holder.report(self.context, lease, Report(tokens=(7, 7, 7, 7)))
                if what < 0.75:
                    self.completed([lease], told)
                elif what < 0.98:
                    holder.release(self.context, lease, chance.choice(OUTCOMES), told)

    def completed(self, held: list[str], told: Report) -> None:
        done = holder.complete(self.context, held, told)
        say("completed", *(each["task"] for each in done.get("completed", [done])))

    def operate(self) -> None:
        """Pause and resume, put back what is parked, cancel a few, reclaim, compact."""
        chance = self.chance
        deeds: list[Callable[[Context], Any]] = [holder.reclaim, compaction.compact, self.cancel]
        for _ in self.rounds():
            scope = chance.choice(SCOPES)
            with forgiving():
                queue.pause(self.context, scope)
                chance.choice(deeds)(self.context)
            for each in SCOPES:
                with forgiving():
                    queue.resume(self.context, each)
            with forgiving(), self.context.store.read() as reading:
                parked = reading.listing(Filter(status=(Status.PARKED,)), limit=50)
            for placed in parked:
                with forgiving():
                    tasks.retry(self.context, [placed.task.id])

    def cancel(self, context: Context) -> None:
        with context.store.read() as reading:
            found = reading.listing(Filter(status=(Status.QUEUED,), kind="review"), limit=1)
            found += reading.listing(Filter(wait="upstream"))  # nothing else would end them
        for placed in found:
            tasks.cancel(context, [placed.task.id])

    def govern(self) -> None:
        """Change the policy whenever the store has changed a little."""
        before = 0
        for _ in self.rounds():
            version = self.version()
            if version >= before + 20:
                before = version
                policies.change_file(self.context.policy_file, [self.chance.choice(CHANGES)])


@contextmanager
def forgiving() -> Iterator[None]:
    """Others were faster: that is ordinary. A store that is busy is asked again."""
    try:
        yield
    except TryLater as error:
        say("later", error.error_code)
    except FairlaneError as error:
        if error.exit_code != 1 or error.error_code in ("corrupt", "store"):
            raise
        say("refused", error.error_code)


def main() -> None:
    role, home, seed, total = sys.argv[1:]
    member = RunningAttempt(Path(home), int(seed), int(total))
    getattr(member, role)()
    say("over")


if __name__ == "__main__":
    main()
