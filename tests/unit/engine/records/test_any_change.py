"""Records of decisions: whatever changes between two of them, what was seen comes back."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from fairlane.engine.look.planned import PlannedRound
from fairlane.engine.records.recording import Recording
from fairlane.engine.records.replaying import Replay
from fairlane.model.codec import canonical
from fairlane.model.plan import Plan, decided
from fairlane.model.project import PolicyText
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Lane, Status
from fairlane.planner import lanes as planner
from fairlane.planner.conclude import short_document, snapshot_document
from fairlane.store.base import Store
from fairlane.store.memory.store import MemoryStore
from fairlane.store.news import NEVER
from fairlane.store.sqlite.store import SqliteStore
from tests.properties.strategies import Draw, World, lease, worlds

STATUSES = (Status.QUEUED, Status.QUEUED, Status.LEASED, Status.RUNNING, Status.DONE, Status.PARKED)


AGES = ("ready", "ready", "ready", "created")


class Undone(Exception):
    """A transaction is rolled back."""


class Seen(NamedTuple):
    """What was recorded."""

    snapshot: Snapshot
    plan: Plan


def moved(world: World, random: Random) -> World:
    """The same world a little later."""
    draw = Draw(random)
    tasks = list(world.tasks)
    for at in random.sample(range(len(tasks)), min(len(tasks), random.randrange(4))):
        status = random.choice(STATUSES)
        held = lease(draw, at) if status.in_flight else None
        tasks[at] = replace(tasks[at], status=status, lease=held)
    projects = tuple(
        replace(row, clock=random.randrange(99)) if random.randrange(4) == 0 else row
        for row in world.projects
    )
    return replace(world, tasks=tuple(tasks), projects=projects, seed=None)


def cut(snapshot: Snapshot, age_from: str, window: int) -> Snapshot:
    """As a store reads it: the first tasks of each lane, in the order of the policy."""
    lanes = []
    for lane in snapshot.lanes:
        entries = lane.in_order(age_from)[:window]
        lanes.append(Lane(lane.key, lane.count, entries, entries))
    flying = sorted(snapshot.in_flight, key=lambda flight: flight.seq)
    return replace(snapshot, lanes=tuple(lanes), in_flight=tuple(flying))


def in_order(snapshot: Snapshot) -> Snapshot:
    """The same with its lanes in the order of their keys: plans do not depend on theirs."""
    lanes = sorted(snapshot.lanes, key=lambda lane: str(lane.key))
    return replace(snapshot, lanes=tuple(lanes))


class Office:
    """Handles that record by turns, and what each of them saw."""

    def __init__(self, store: Store, world: World, random: Random) -> None:
        self.store, self.world, self.random = store, world, random
        self.recordings = [Recording(), Recording()]
        self.seen: dict[int, Seen] = {}
        self.base = 0

    def turn(self) -> None:
        """Something changes, and one of them makes a plan; or it is another kind of round."""
        self.world = moved(self.world, self.random)
        snapshot, policy, now = self.world.args
        policy = policy.with_overrides({"score.age_from": self.random.choice(AGES)})
        which, window = self.random.randrange(2), self.random.choice((1, 2, 8, 8, 8))
        seen = cut(snapshot, policy.score.age_from, window)
        wide = frozenset(lane.key for lane in seen.lanes if self.random.randrange(9) == 0)
        further = {lane.key: lane for lane in cut(snapshot, policy.score.age_from, 99).lanes}
        lanes = tuple(further[lane.key] if lane.key in wide else lane for lane in seen.lanes)
        seen = replace(seen, lanes=lanes)
        plan = planner.plan(snapshot, policy, now)
        planned = PlannedRound(
            policy, now, NEVER, seen, decided(plan), {}, wide, window=window, whole=plan
        )
        recorder = self.recordings[which]
        if self.random.randrange(5) == 0:
            return  # nothing worth a record
        with suppress(Undone), self.store.write() as tx:
            tx.put(PolicyText(policy.digest(), canonical(policy.document()).decode()))
            number = tx.number("decision")
            self.base = number if self.base == 0 or self.random.randrange(20) == 0 else self.base
            decision = recorder.next(tx, planned, number, self.base)
            tx.put_decision(decision)
            if self.random.randrange(12) == 0:
                raise Undone
            self.seen[decision.number] = Seen(seen, plan)

    def check(self) -> None:
        """Each record gives back what was seen, in whatever order they are read."""
        replay = Replay()
        with self.store.read() as reading:
            rows = reading.decisions()
            assert [row.number for row in rows] == sorted(self.seen)
            self.random.shuffle(rows)
            for row in rows:
                seen = self.seen[row.number]
                found = replay.snapshot(reading, row)
                assert in_order(found) == in_order(seen.snapshot)
                recorded = replay.recorded(reading, row)
                assert canonical(recorded) == canonical(short_document(decided(seen.plan)))
                document = canonical(snapshot_document(seen.snapshot))
                assert canonical(snapshot_document(found)) == document


@contextmanager
def stores() -> Iterator[list[Store]]:
    """One in memory, one in a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = SqliteStore.open(Path(folder) / "fairlane.db")
        file.connection.execute("PRAGMA synchronous = OFF")
        try:
            yield [MemoryStore(), file]
        finally:
            file.close()


@given(worlds(30), st.integers(0, 2**48), st.integers(1, 25))
def test_what_was_seen_comes_back(world: World, seed: int, turns: int) -> None:
    with stores() as both:
        for store in both:
            office = Office(store, world, Random(seed))
            for _ in range(turns):
                office.turn()
            office.check()
