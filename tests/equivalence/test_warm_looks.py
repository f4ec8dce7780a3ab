"""Whatever happens, by whichever process: a view that was kept sees what a new one sees."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.engine import attempts
from fairlane.engine.context import Context
from fairlane.engine.look.workers import Asker
from fairlane.engine.round import committed_round
from fairlane.model.project import Pause
from fairlane.model.record import replace
from fairlane.planner.warm import WarmPlanner
from fairlane.service import queue, tasks
from fairlane.settings import Settings, host_name
from fairlane.store.base import Filter, Store
from fairlane.store.memory.store import MemoryStore
from fairlane.store.sqlite.store import SqliteStore
from tests import holder
from tests.looks import compare_looks
from tests.properties.hour import POLICIES, Deed, Hour

EXAMPLES = settings().max_examples
#: What is done most is named more than once.
DEEDS = (
    "add", "add", "add", "lease", "lease", "lease", "lease", "complete", "complete", "release",
    "finish", "jump", "jump", "heartbeat", "report", "progress", "cancel", "retry", "edit", "pause",
    "resume", "resume", "weight", "rule", "reclaim", "compact", "start", "renew", "direct",
    "lose_plan", "undo", "share", "limit_project", "here", "stop",
)  # fmt: skip
NUMBERS = st.integers(0, 400)
HOURS = st.lists(st.tuples(st.sampled_from(DEEDS), NUMBERS, NUMBERS), min_size=5, max_size=60)
BUDGETS = (
    'budget = [{ scope = "all", window = "1h", tokens = 30000 }]',
    'budget = [{ scope = "project:web", window = "5m", tokens = 9000 }]',
    'budget = [{ scope = "all", window = "total", usd = 0.004 }]',
)


class Undone(Exception):
    """What ends a transaction that is to be undone."""


class Office(Hour):
    """Several processes on one store, which do something in turn."""

    policies = (*POLICIES, *BUDGETS, *(rule for rule in POLICIES if rule.startswith("caps")))

    def __init__(self, home: Path, stores: Sequence[Store], workspaces: bool) -> None:
        super().__init__(home, stores[0], workspaces=workspaces)
        first = self.context
        more = [Context(home, store, Settings(), self.clock, "tester") for store in stores[1:]]
        self.contexts = [first, *more]

    def do(self, deed: Deed) -> None:
        self.context = self.contexts[(deed[1] + deed[2]) % len(self.contexts)]
        super().do(deed)

    def lose_plan(self, one: int, _: int) -> None:
        """A round that fails when it has committed nothing."""
        with suppress(Undone), committed_round(self.context, Asker(f"worker{one % 3}")):
            raise Undone

    def undo(self, one: int, _: int) -> None:
        """A transaction of anything else that fails."""
        with suppress(Undone), self.context.store.write() as tx:
            tx.put(Pause("all"))
            tx.put_value("clock", one)
            tx.put_attempts([replace(row, expires_at=one) for row in tx.open_attempts()])
            raise Undone

    def share(self, one: int, two: int) -> None:
        """Several transactions of one commit."""
        with suppress(Undone), self.context.store.sharing():
            holder.lease(self.context, 1 + two % 2, f"worker{two % 3}")
            queue.pause(self.context, "kind:plan")
            holder.lease(self.context, 1, f"worker{one % 3}")
            self.lose_plan(two, one)
            holder.lease(self.context, 1, f"worker{one % 3}")
            if one % 2:
                raise Undone

    def here(self, one: int, two: int) -> None:
        """Attempts of this host; of their processes nobody knows."""
        asker = Asker("worker0", None, "process", host_name())
        attempts.lease(self.context, asker, only=[self.some_task(one), self.some_task(two)])

    def stop(self, one: int, _: int) -> None:
        """A task in flight is asked to stop."""
        with self.context.store.read() as reading:
            flying = [task.id for task in reading.in_flight()]
        if flying:
            tasks.cancel(self.context, [flying[one % len(flying)]])

    def limit_project(self, one: int, two: int) -> None:
        from fairlane.service.projects import set_project

        cap = None if one % 3 == 0 else 1 + one % 3
        set_project(self.context, ("web", "ops")[two % 2], {"max_in_flight": cap})

    def hold(self, deed: str) -> None:
        with self.context.store.read() as reading:
            listed = reading.listing(Filter(), limit=10_000)
            leased = reading.open_attempts()
        self.known = {placed.task.id: placed.task for placed in listed}
        self.fence = max([self.fence, *(attempt.fence for attempt in leased)])


def spend(office: Office, deeds: Sequence[Deed]) -> int:
    """How many rounds were compared."""
    with compare_looks() as compared:
        for deed in deeds:
            office.do(deed)
        office.rule(1, 0)
        for context in office.contexts:
            holder.lease(context, None, "worker0")
    assert all(context.store.check() == [] for context in office.contexts)
    return len(compared)


def in_memory() -> list[Store]:
    first = MemoryStore()
    return [first, MemoryStore(beside=first)]


def on_a_file(folder: Path) -> list[Store]:
    stores = [SqliteStore.open(folder / "fairlane.db") for _ in range(2)]
    for store in stores:
        store.connection.execute("PRAGMA synchronous = OFF")
    return [*stores]


@settings(max_examples=EXAMPLES if EXAMPLES > 200 else 40)
@given(HOURS, st.booleans())
def test_in_memory(deeds: list[Deed], workspaces: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert spend(Office(Path(folder), in_memory(), workspaces), deeds) >= 2


@settings(max_examples=EXAMPLES if EXAMPLES > 200 else 20)
@given(HOURS, st.booleans())
def test_on_a_file(deeds: list[Deed], workspaces: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stores = on_a_file(Path(folder))
        try:
            assert spend(Office(Path(folder), stores, workspaces), deeds) >= 2
        finally:
            for store in stores:
                store.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_long_hour(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {True: 0, False: 0}
    begin = WarmPlanner._begin

    def counted(*args: object) -> object:
        round = begin(*args)  # type: ignore[arg-type]
        kept[round is not None] += 1
        return round

    monkeypatch.setattr(WarmPlanner, "_begin", counted)
    chance = Random(seed)
    office = Office(tmp_path, on_a_file(tmp_path) if seed % 2 else in_memory(), seed % 3 == 0)
    deeds = [
        (chance.choice(DEEDS), chance.randrange(400), chance.randrange(400)) for _ in range(600)
    ]
    assert spend(office, deeds) > 100
    assert kept[True] > 20, "rounds rest on what was kept"
