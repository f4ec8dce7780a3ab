"""An hour of anything: after every deed the promises hold, and every decision replays."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlane.engine import decisions
from fairlane.store.memory.store import MemoryStore
from fairlane.store.sqlite.store import SqliteStore
from tests.looks import compare_looks
from tests.properties.hour import Deed, Hour

#: What is done most is named more than once.
DEEDS = (
    "add", "add", "add", "lease", "lease", "lease", "complete", "complete", "release", "release",
    "jump", "jump", "heartbeat", "report", "cancel", "retry", "edit", "pause", "resume", "resume",
    "weight", "rule", "reclaim", "compact", "start", "renew", "progress", "finish", "finish",
    "direct", "turn", "turn",
)  # fmt: skip
NUMBERS = st.integers(0, 400)
HOURS = st.lists(st.tuples(st.sampled_from(DEEDS), NUMBERS, NUMBERS), min_size=1, max_size=70)
EXAMPLES = settings().max_examples


@contextmanager
def two_stores(folder: Path) -> Iterator[list[SqliteStore]]:
    """One file, as two processes have it."""
    stores = [SqliteStore.open(folder / "fairlane.db") for _ in range(2)]
    try:
        for store in stores:
            store.connection.execute("PRAGMA synchronous = OFF")
        yield stores
    finally:
        for store in stores:
            store.close()


def spend(hour: Hour, deeds: list[Deed]) -> None:
    with compare_looks():
        for deed in deeds:
            hour.do(deed)
    for planner in ("lanes", "reference"):
        assert decisions.replay(hour.context, planner=planner)["different"] == []


@settings(max_examples=EXAMPLES if EXAMPLES > 200 else 40)
@given(HOURS)
@example([("add", 1, 0), ("add", 1, 0), ("direct", 0, 2)])  # two of one lane at once
def test_an_hour_in_memory(deeds: list[Deed]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spend(Hour(Path(folder), MemoryStore()), deeds)


@settings(max_examples=EXAMPLES if EXAMPLES > 200 else 30)
@given(HOURS)
def test_an_hour_on_a_file(deeds: list[Deed]) -> None:
    with tempfile.TemporaryDirectory() as folder, two_stores(Path(folder)) as both:
        spend(Hour(Path(folder), both[0], both[1]), deeds)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_long_hour(seed: int, tmp_path: Path) -> None:
    import random

    chance = random.Random(seed)
    deeds = [
        (chance.choice(DEEDS), chance.randrange(400), chance.randrange(400)) for _ in range(400)
    ]
    with two_stores(tmp_path) as both:
        spend(Hour(tmp_path, both[0], both[1]), deeds)
