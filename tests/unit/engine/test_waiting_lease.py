"""A `lease` that waits: what is written during its round is not missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.clock import VirtualClock
from fairlane.engine import attempts
from fairlane.engine.context import Context
from fairlane.model.instant import MINUTE, SECOND, show_instant
from fairlane.service import pull, tasks
from fairlane.settings import Settings
from fairlane.store.sqlite.store import SqliteStore


def test_a_write_during_the_round_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, real = VirtualClock(MINUTE), attempts.lease
    mine, other = (
        Context(tmp_path, SqliteStore.open(tmp_path / "fairlane.db"), Settings(), clock, "ann")
        for _ in range(2)
    )

    def lease_then_add(*arguments, **options):
        leased = real(*arguments, **options)
        if not leased.documents:
            tasks.add(other, [{"id": "late", "prompt": "x"}])
        return leased

    monkeypatch.setattr(attempts, "lease", lease_then_add)
    answer = pull.lease(mine, 1, "box", wait=MINUTE)
    assert [lease["task"] for lease in answer["leases"]] == ["late"]
    assert clock.monotonic() == pull.GATHER_SECONDS  # virtual: it did not wait for the next look
    mine.store.close()
    other.store.close()


def test_a_timer_that_passes_ends_the_wait(tmp_path: Path) -> None:
    clock = VirtualClock(MINUTE)
    store = SqliteStore.open(tmp_path / "fairlane.db")
    context = Context(tmp_path, store, Settings(), clock, "ann")
    later = show_instant(MINUTE + 700 * SECOND // 1000)
    tasks.add(context, [{"id": "later", "prompt": "x", "not_before": later}])
    answer = pull.lease(context, 1, "box", wait=MINUTE)
    assert [lease["task"] for lease in answer["leases"]] == ["later"]
    assert clock.monotonic() == 0.7  # virtual: when it is due, not at the next look
    store.close()
