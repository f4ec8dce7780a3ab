"""A store whose commits are told to a checker, and an hour of use that is watched so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlane.model.errors import FairlaneError
from fairlane.model.instant import Instant
from fairlane.service import groups, projects, queue, tasks
from fairlane.settings import host_name
from fairlane.store.base import Store, Writing
from fairlane.testing.torture.ports import Recorder, Write
from fairlane.testing.torture.promises import Broken, Checker, Party
from tests import holder
from tests.properties import hour

#: More that a policy file may say.
RULES = (
    '[[budget]]\nscope = "all"\ntokens = 400000\nwindow = "1h"\non_exceeded = "stop"',
    '[[budget]]\nscope = "project:web"\nusd = 0.001\nwindow = "day"',
    '[[budget]]\nscope = "group:top"\ntokens = 30000\nwindow = "total"\non_exceeded = "stop"',
    'cooldown.base = "30s"', 'breaker.half_open_after = "2m"', "breaker.launch_failures = 1",
    'caps."group:*" = 1', "locks.parallel_default = false", 'share.idle_credit = 1000',
    "share.guarantee = 2", 'lease.ttl = "1m"', 'checks.rounds = 1', 'overdue.after = "1m"',
    'usage.count = ["input", "cache_read"]',
)  # fmt: skip


class WatchedStore:
    """A store that tells of every commit."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.told: Callable[[list[Write]], None] = lambda writes: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextmanager
    def write(self) -> Iterator[Writing]:
        """One transaction, and then what it wrote is told."""
        with self.inner.write() as tx:
            recorder = Recorder(tx)
            yield recorder
        self.told(recorder.writes)


class WatchedHour(hour.Hour):
    """An hour of use; after every commit the promises are checked."""

    def __init__(self, home: Path, inner: Store) -> None:
        self.checker = Checker(inner, self.party)
        self.broken: Broken | None = None
        watched = WatchedStore(inner)
        watched.told = self.committed
        super().__init__(home, watched)
        groups.add_group(self.context, "top")
        groups.add_group(self.context, "g", parent="top")
        projects.set_project(self.context, "ops", {"checks": [["true"]], "max_in_flight": 2})

    def party(self, process: str) -> Party:
        """By which rules it goes."""
        try:
            return Party(self.context.policy(), host_name())
        except FairlaneError:
            with self.context.store.read() as reading:
                last = self.context.policy_for_reading(reading)
            return Party(last, host_name(), broken=True)

    def committed(self, writes: list[Write]) -> None:
        """Every commit is checked."""
        now: Instant = self.clock.at
        try:
            self.checker.committed("tester", writes, now, now)
        except Broken as error:  # whoever commits may catch it
            self.broken = self.broken or error

    def hold(self, deed: str) -> None:
        """What was checked has held; the next deed knows the tasks that there are."""
        if self.broken is not None:
            raise self.broken
        self.known = {name: placed.task for name, placed in self.checker.model.tasks.items()}
        self.fence = self.checker.model.last_fence

    # Deeds

    def finish(self, one: int, two: int) -> None:
        """Several ends at once; nobody says that a lease is lost that has not run out."""
        super().finish(one + (one % 8 == 7), two)

    def record(self, one: int, two: int) -> dict[str, Any]:
        made = super().record(one, two)
        if one % 11 == 3:
            made["checks"] = [["make", "test"]]
        if one % 13 == 5:
            made["group"] = "top" if two % 2 else "g"
        return made

    def rule(self, one: int, two: int) -> None:
        """The policy file says something else from here on."""
        if one % 3 == 0:
            super().rule(one, two)
            return
        budgets, keys = [], {}
        for number in range(1 + two % 4):
            text = RULES[(one * 7 + two + number * 5) % len(RULES)]
            if text.startswith("[["):
                budgets.append(text)
            else:
                keys[text.split(" = ")[0]] = text
        self.changes += 1
        self._write("\n".join([*keys.values(), *dict.fromkeys(budgets)]))

    def spoil(self, one: int, two: int) -> None:
        """The policy file is broken, or whole again."""
        self.changes += 1
        self._write("caps.all = -1" if one % 2 else "")

    def _write(self, text: str) -> None:
        import os

        file = self.context.policy_file
        file.write_text(text, encoding="utf-8")
        os.utime(file, ns=(self.changes, self.changes))

    def checked(self, one: int, two: int) -> None:
        """A holder outside sends what came of its checks."""
        lease = self.some_lease(one)
        attempt = self.checker.model.attempts.get(lease)
        rows = (
            [{"name": row["name"], "exit": int(two % 4 == 0)} for row in attempt.checks]
            if (attempt)
            else []
        )
        from fairlane.engine.end_attempt import Report

        holder.complete(self.context, [lease], Report(checks=tuple(rows)))

    def throttle(self, one: int, two: int) -> None:
        """The provider says that it is too much."""
        from fairlane.engine.end_attempt import Report

        report = Report(retry_after=(two % 90) * 1_000_000, tokens=self.told(two).tokens)
        holder.release(self.context, self.some_lease(one), "throttled", report)

    def fail_launch(self, one: int, two: int) -> None:
        """It could not be started."""
        holder.release(self.context, self.some_lease(one), "launch_failed", self.told(0))

    def move(self, one: int, two: int) -> None:
        """A task goes to another project or group."""
        change = {"project": hour.PROJECTS[two % 3]} if two % 2 else {"group": "top"}
        tasks.edit(self.context, [self.some_task(one)], change)

    def clear(self, one: int, two: int) -> None:
        """Take out what is queued."""
        queue.clear(self.context, hour.SCOPES[one % len(hour.SCOPES)])
