"""Beside each warm look a cold one, in the same transaction: they see and plan the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fairlane.engine import round as rounds
from fairlane.engine.look.planned import NO_FACTS, PlannedRound, look_and_plan
from fairlane.model.codec import canonical, encode
from fairlane.model.plan import decided
from fairlane.model.record import changed
from fairlane.model.snapshot import Snapshot
from fairlane.planner.conclude import plan_bytes, short_document


def seen(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot as its bytes, part by part; the order of lanes says nothing."""
    document = encode(changed(snapshot, lanes=()))
    assert isinstance(document, dict)
    lanes = sorted(canonical([lane.key, lane.count, encode(lane)]) for lane in snapshot.lanes)
    return {name: canonical(part) for name, part in document.items()} | {"lanes": lanes}


def same(warm: PlannedRound, cold: PlannedRound) -> None:
    """Two rounds that saw the same, and plan the same."""
    assert seen(warm.snapshot) == seen(cold.snapshot)
    assert canonical(short_document(warm.decided)) == canonical(short_document(decided(cold.plan)))
    assert plan_bytes(warm.plan) == plan_bytes(cold.plan)
    assert warm.attempts == cold.attempts
    assert (warm.window, warm.widened, warm.mark) == (cold.window, cold.widened, cold.mark)


@contextmanager
def compare_looks() -> Iterator[list[PlannedRound]]:
    """Compares every round of this block; gives those that it has compared."""
    compared: list[PlannedRound] = []

    def both(context: Any, reading: Any, policy: Any, now: Any, asker: Any, **more: Any) -> Any:
        assert more["view"] is context.view is not None
        warm = look_and_plan(context, reading, policy, now, asker, **more)
        facts = more.get("facts") or NO_FACTS
        same(warm, look_and_plan(context, reading, policy, now, asker, facts=facts))
        compared.append(warm)
        return warm

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "look_and_plan", both)
        yield compared
