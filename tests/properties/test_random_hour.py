"""An hour of anything: after every deed the promises hold, and every decision replays."""

from __future__ import annotations

import tempfile
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
    "direct",
)  # fmt: skip
NUMBERS = st.integers(0, 400)
HOURS = st.lists(st.tuples(st.sampled_from(DEEDS), NUMBERS, NUMBERS), min_size=1, max_size=70)
EXAMPLES = settings().max_examples


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
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder) / "fairlane.db")
        store.connection.execute("PRAGMA synchronous = OFF")
        try:
            spend(Hour(Path(folder), store), deeds)
        finally:
            store.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_long_hour(seed: int, tmp_path: Path) -> None:
    import random

    chance = random.Random(seed)
    store = SqliteStore.open(tmp_path / "fairlane.db")
    store.connection.execute("PRAGMA synchronous = OFF")
    hour = Hour(tmp_path, store)
    deeds = [
        (chance.choice(DEEDS), chance.randrange(400), chance.randrange(400)) for _ in range(400)
    ]
    try:
        spend(hour, deeds)
    finally:
        store.close()
