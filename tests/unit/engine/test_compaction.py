"""A compaction goes in parts: it stops after any of them, and the next one goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlane.engine import compaction, context, decisions
from fairlane.model.instant import DAY, HOUR
from fairlane.store.sqlite.store import SqliteStore
from tests.unit.contexts import TestContext

TASKS = 9


@pytest.fixture(params=["memory", "file"])
def office(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Tasks that ended a month and more ago, each an hour after the other; few rows a part."""
    monkeypatch.setattr(compaction, "PART", 4)
    monkeypatch.setattr(context, "PAUSE_SECONDS", 0)
    store = SqliteStore.open(tmp_path / "fairlane.db") if request.param == "file" else None
    office = TestContext(tmp_path, store=store)
    for number in range(TASKS):
        office.add({"id": f"t{number}"})
        office.finish(office.lease()[0]["lease"], output=number)
        office.wait(HOUR)
    office.wait(31 * DAY)
    yield office
    office.context.store.close()


def one_part(office: TestContext) -> dict[str, Any] | None:
    return compaction.compact(office.context, lambda: True)


def logged(office: TestContext) -> list[dict[str, Any]]:
    with office.context.store.read() as reading:
        return [dict(event.data) for event in reading.events(kind="compacted")]


def used(office: TestContext) -> object:
    with office.context.store.read() as reading:
        return reading.usage_sums("", 0)


def tombstones(office: TestContext) -> int:
    with office.context.store.read() as reading:
        tasks = reading.tasks(f"t{number}" for number in range(TASKS))
    return sum(task.meta == {"compacted": True} for task in tasks.values())


def test_what_stops_goes_on_and_is_counted_once(office: TestContext):
    before, with_events = used(office), 0
    with office.context.store.read() as reading:
        with_events = len(reading.events())
    seen, done = [], None
    while done is None:
        done = one_part(office)
        seen.append(tombstones(office))
        assert used(office) == before
        assert office.context.store.check() == []
    assert seen[:4] == [4, 8, 9, 9]
    assert (done["tasks"], done["events"], done["decisions"]) == (TASKS, with_events, TASKS)
    assert logged(office) == [{"tasks": TASKS, "events": with_events, "decisions": TASKS}]


def test_it_is_due_until_it_is_through(office: TestContext):
    assert not compaction.is_due(office.context)  # the first look notes when it began
    office.wait(DAY)
    assert compaction.is_due(office.context)
    assert one_part(office) is None
    assert compaction.is_due(office.context)
    assert compaction.compact(office.context) is not None
    assert not compaction.is_due(office.context)


def test_a_policy_that_keeps_more_holds_from_the_next_part_on(office: TestContext):
    assert one_part(office) is None
    office.policy('history.keep = "365d"\n')
    done = compaction.compact(office.context)
    assert done is not None
    assert (done["tasks"], tombstones(office)) == (4, 4)


def test_two_at_once_are_one(office: TestContext):
    assert one_part(office) is None
    others: list[Any] = []

    def other_is_through() -> bool:
        if not others:
            others.append(None)
            others.append(compaction.compact(office.context))
        return False

    assert compaction.compact(office.context, other_is_through) is not None
    assert others[1]["tasks"] == TASKS
    assert len(logged(office)) == 1


def test_what_is_decided_between_two_parts_is_replayed(office: TestContext):
    """The lanes on which the next decision would have built are gone with a part."""
    while decisions.listing(office.context)["decisions"]:
        assert one_part(office) is None
    for number in range(3):
        office.add({"id": f"n{number}"})
        office.finish(office.lease(1)[0]["lease"])
        one_part(office)
    told = decisions.replay(office.context)
    assert (told["replayed"], told["different"]) == (3, [])
