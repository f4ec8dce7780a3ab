"""A context for each test, on every store that a machine has by itself."""

from __future__ import annotations

import pytest

from fairlane.store.memory.store import MemoryStore
from fairlane.store.sqlite.store import SqliteStore
from tests.unit.contexts import TestContext


@pytest.fixture(params=["memory", "sqlite"])
def office(tmp_path, request):
    memory = request.param == "memory"
    store = MemoryStore() if memory else SqliteStore.open(tmp_path / "fairlane.db")
    yield TestContext(tmp_path, store=store)
    store.close()
