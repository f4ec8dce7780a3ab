"""Many processes on one store: they add, lease, end, pause, change caps, and are killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Thread
from typing import cast

import pytest

from fairlane.app import open_context
from fairlane.clock import FixedClock
from fairlane.engine import decisions
from fairlane.model.instant import DAY, SECOND, show_instant
from fairlane.model.task import Status
from fairlane.service import policies, projects, tasks
from fairlane.store.base import Filter, Store, Writing
from tests import holder
from tests.faults.crowd import POLICY, PROJECTS
from tests.faults.ledger import events_of, picks_of, violations
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
TASKS_PER_SECOND = 8
ROLES = ("add", "add", "work", "work", "work", "work", "operate", "govern")


class Process:
    """A member of the crowd, and what it has said so far."""

    def __init__(self, role: str, home: Path, seed: int, total: int) -> None:
        self.role = role
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.crowd", role, str(home), str(seed), str(total)],
            cwd=ROOT,
            env={**os.environ, "USER": f"{role}{seed}"},
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = Thread(target=self._read)
        self._reader.start()
        self.kill_after: int | None = None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):
                self.lines.append(line.strip())
            if self.kill_after is not None and len(self.lines) >= self.kill_after:
                self._process.kill()

    def end(self, seconds: float) -> int:
        """Its exit status, when it has ended and everything it said was read."""
        try:
            return self._process.wait(seconds)
        finally:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def told(self, what: str) -> list[str]:
        said = (line.split() for line in self.lines)
        return [word for first, *words in said if first == what for word in words]


def crowd(home: Path, total: int, kills: int, seconds: float) -> list[Process]:
    """Everybody works until all is over; some workers are killed, and others take their place."""
    chance = random.Random(total)
    running = [Process(role, home, seed, total) for seed, role in enumerate(ROLES)]
    ended = []
    try:
        for number in range(kills):
            victim = next(each for each in running if each.role == "work")
            victim.kill_after = len(victim.lines) + chance.randint(3, 12)
            assert victim.end(seconds) in (-9, 0)
            running.remove(victim)
            ended.append(victim)
            running.append(Process("work", home, 100 + number, total))
        while running:
            ended.append(running[0])
            assert ended[-1].end(seconds) == 0, f"{ended[-1].role} failed"
            assert ended[-1].lines[-1] == "over"
            del running[0]
    finally:
        for each in running:
            each.kill()
    return ended


def judge(home: Path, total: int, said: list[Process]) -> str:
    context = open_context(home)
    try:
        assert context.store.check() == []
        picks = list(picks_of(context))
        with context.store.read() as reading:
            events = events_of(reading)
            listed = reading.listing(Filter(), limit=2 * total)
            bookings = reading.usage("all", None)
            attempts = [each for placed in listed for each in reading.attempts(placed.task.id)]
        known = {placed.task.id: placed.task for placed in listed}
        added = [name for each in said for name in each.told("added")]
        assert sorted(added) == sorted(known)
        assert len(added) == total
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert violations(events, picks, known) == []
        done = Counter(task.id for task in known.values() if task.status is Status.DONE)
        assert {name for each in said for name in each.told("completed")} <= done.keys()
        succeeded = Counter(each.task for each in attempts if each.outcome == "succeeded")
        assert succeeded == done
        booked = [sum(column) for column in zip(*(each.tokens for each in bookings), strict=True)]
        assert booked == [sum(c) for c in zip(*(each.tokens for each in attempts), strict=True)]
        assert sum(each.completions for each in bookings) == len(done)
        untouched = sum(each.outcome == "released" for each in attempts)
        assert sum(each.starts for each in bookings) == len(attempts) - untouched
        for planner in ("lanes", "reference"):
            replayed = decisions.replay(context, planner=planner)
            assert replayed["different"] == []
        later = sum(len(each.told("later")) for each in said)
        return (
            f"{len(said)} processes, {total} tasks: {len(done)} done, {len(attempts)} attempts, "
            f"{len(events)} events, {replayed['replayed']} decisions replayed alike, {later} busy"
        )
    finally:
        context.store.close()


def prepare(home: Path) -> None:
    home.mkdir()
    (home / "policy.toml").write_text(POLICY, encoding="utf-8")
    context = open_context(home)
    for weight, name in enumerate(PROJECTS):
        projects.add_project(context, name, {"weight": weight})
    context.store.close()


@pytest.mark.slow
def test_a_crowd_keeps_every_promise(tmp_path, record_property):
    prepare(tmp_path / "home")
    said = crowd(tmp_path / "home", 200, kills=4, seconds=2 * LIMIT_SECONDS)
    record_property("told", judge(tmp_path / "home", 200, said))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_large_crowd_keeps_every_promise(tmp_path, soak_seconds_left, record_property):
    """As many tasks as its time allows, 5,000 at most."""
    total = 2 * min(2500, max(150, int(soak_seconds_left() * TASKS_PER_SECOND / 2)))
    prepare(tmp_path / "home")
    said = crowd(tmp_path / "home", total, kills=total // 150, seconds=1200)
    record_property("told", judge(tmp_path / "home", total, said))


class Queues:
    """A store whose turn comes only after something else has happened."""

    def __init__(self, store: Store, meanwhile: Callable[[], object]) -> None:
        self.store, self.meanwhile = store, meanwhile
        self.shared, self.read, self.stamp = False, store.read, store.stamp

    def write(self) -> AbstractContextManager[Writing]:
        self.meanwhile()
        return self.store.write()


def test_what_changes_while_a_caller_waits_for_its_turn_counts(tmp_path):
    prepare(tmp_path / "home")
    context = open_context(tmp_path / "home", clock=FixedClock(10 * DAY))
    held = context.store
    tasks.add(context, [{"id": f"t{n}"} for n in range(9)])

    def meanwhile() -> None:
        policies.change_file(context.policy_file, ["caps.all=2"])
        context.clock = FixedClock(11 * DAY)

    context.store = cast(Store, Queues(held, meanwhile))
    got = holder.lease(context)["leases"]
    assert len(got) == 2, "the cap was lowered before its turn came"
    assert {each["expires_at"] for each in got} == {show_instant(11 * DAY + 3 * SECOND)}
    held.close()
