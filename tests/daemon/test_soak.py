"""Many tasks, many faults, a daemon that is killed again and again: nothing is lost."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from time import monotonic, sleep
from typing import Any

import pytest

from fairlane.model.event import Event
from fairlane.model.task import Attempt
from fairlane.runtime.lock import holder
from tests.daemon.world import World

pytestmark = [pytest.mark.soak(seconds=150), pytest.mark.timeout(0)]

TASKS, SLOTS, BATCH = 2_000, 50, 50
PROJECTS = ("web", "api", "docs")
CAPS = {"all": 40, "project:web": 20, "kind:review": 6}
POLICY = """
retry.max_attempts = 50
retry.base = "100ms"
retry.cap = "2s"
cooldown.base = "200ms"
cooldown.exponent_max = 1
lease.ttl = "5s"
breaker.half_open_after = "none"
[caps]
all = 40
"project:web" = 20
"kind:review" = 6
"""
FAULTS = {
    "FAIRLANE_DEMO_SECONDS": "0.5",
    "FAIRLANE_DEMO_FAIL": "0.05",
    "FAIRLANE_DEMO_THROTTLE": "0.005",
    "FAIRLANE_DEMO_LOST": "0.03",
    "FAIRLANE_DEMO_RETRY_AFTER": "0.2",
}
#: How long the last tasks may take beyond the time that was given.
LATE_SECONDS = 300
#: Outcomes that a fault may have; the last attempt of a task succeeds.
FAULTY = {"failed", "lost", "throttled"}
_ENDS = {"succeeded", "released", "launch_failed", "environment", *FAULTY}


class Soak:
    """Adds tasks while there is time, and does harm while they run."""

    def __init__(self, world: World, left: Callable[[], float]) -> None:
        self.world, self.left = world, left
        self.draw = random.Random(11)
        self.added = 0
        self.kinds: dict[str, str] = {}
        self.kills: Counter[str] = Counter()

    def run(self) -> None:
        """Two thirds of the time for adding, the rest for ending what is there."""
        reserve = self.left() / 3
        harm_at = monotonic() + 2
        with self.world.context() as context:
            while True:
                with context.store.read() as reading:
                    counts = Counter[str]()
                    for tally in reading.tallies():
                        counts[str(tally.status)] += tally.count
                if self.added < TASKS and self.left() > reserve and counts["queued"] < BATCH:
                    self.add_some()
                elif set(counts) == {"done"}:
                    return
                if monotonic() >= harm_at:
                    self.harm(context.store)
                    harm_at = monotonic() + self.draw.uniform(1, 4)
                if holder(self.world.home) is None:
                    self.world.up()
                assert self.left() > -LATE_SECONDS, f"it does not end: {counts}"
                sleep(0.1)

    def add_some(self) -> None:
        records: list[dict[str, Any]] = []
        for number in range(self.added, min(TASKS, self.added + BATCH)):
            kind = "review" if self.draw.random() < 0.2 else "code"
            self.kinds[f"s{number}"] = kind
            task = {"id": f"s{number}", "project": self.draw.choice(PROJECTS), "kind": kind}
            records.append(task | {"agent": "demo", "prompt": "work", "env": FAULTS})
        self.world.add(*records)
        self.added += len(records)

    def harm(self, store: Any) -> None:
        """Kill the daemon, or one of the processes that own an agent."""
        told = holder(self.world.home)
        if self.draw.random() < 0.5 and told and told.get("pid"):
            self.world.kill(told["pid"])
            self.kills["daemon"] += 1
            return
        with store.read() as reading:
            handles = [each.handle for each in reading.open_attempts() if each.handle]
        pids = [int(handle.split()[0]) for handle in handles]
        if pids:
            with suppress(ProcessLookupError):
                os.kill(self.draw.choice(pids), signal.SIGKILL)
                self.kills["runner"] += 1


def test_two_thousand_tasks_under_fire(
    world: World, soak_seconds_left: Callable[[], float], record_property: Any
) -> None:
    world.settings(f"[worker]\nslots = {SLOTS}\n")
    world.policy(POLICY)
    for name in PROJECTS:
        world.fairlane("project", "add", name)
    soak = Soak(world, soak_seconds_left)
    soak.run()
    world.fairlane("down")
    outcomes, tokens = Counter[str](), 0
    with world.context() as context, context.store.read() as reading:
        for number in range(soak.added):
            attempts = reading.attempts(f"s{number}")
            check_attempts(attempts)
            outcomes.update(str(each.outcome) for each in attempts)
            tokens += sum(sum(each.tokens) for each in attempts)
        booked = sum(sum(row.tokens) for row in reading.usage("all", None))
        most = most_at_once(all_events(reading), soak.kinds)
    assert outcomes["succeeded"] == soak.added > 0
    assert booked == tokens
    assert all(most[scope] <= cap for scope, cap in CAPS.items()), most
    assert world.processes() == []
    assert world.sound()
    record_property(
        "told",
        f"soak of the daemon: {soak.added} tasks, {dict(outcomes)}, killed {dict(soak.kills)}, "
        f"at most {most['all']} at once",
    )


def check_attempts(attempts: list[Attempt]) -> None:
    """One after the other, each with its own end; the last one succeeded."""
    assert [each.number for each in attempts] == list(range(1, len(attempts) + 1))
    assert [each.outcome for each in attempts][-1:] == ["succeeded"]
    assert {each.outcome for each in attempts[:-1]} <= FAULTY
    for before, after in pairwise(attempts):
        assert before.ended_at is not None
        assert before.ended_at <= after.leased_at
        assert before.fence < after.fence


def all_events(reading: Any) -> Iterator[Event]:
    after = 0
    while page := reading.events(after=after, limit=10_000):
        yield from page
        after = page[-1].number


def most_at_once(events: Iterator[Event], kinds: dict[str, str]) -> Counter[str]:
    """The most that were in flight at once, by scope, by the log."""
    flying, most = Counter[str](), Counter[str]()
    for event in events:
        change = (event.kind == "leased") - (event.kind in _ENDS and "attempt" in event.data)
        if change:
            for scope in ("all", f"project:{event.project}", f"kind:{kinds.get(event.task or '')}"):
                flying[scope] += change
                most[scope] = max(most[scope], flying[scope])
    assert not any(flying.values())
    return most
