"""Imports and syncs in any order, with people and attempts between them, keep their promises."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from fairlane.intake.sources.base import Collection, Found, Item, Standing, Where
from fairlane.model.documents.sources import ImportAnswer
from fairlane.model.errors import NotFound, Refused
from fairlane.model.task import Status, Task
from fairlane.service import tasks
from fairlane.service.sync.close import undo
from fairlane.service.sync.importing import ImportOptions, apply
from fairlane.service.sync.mapping import entries, source_key, untouched
from tests.unit.contexts import TestContext

WHERE = Where(Path("/backlog/list"))
KEY = source_key("list", WHERE)
IDS = ("a", "b", "c d", "c/d", "c-d", "e")
CHANGES = ("created", "changed", "canceled")

ITEMS = some.builds(
    Item,
    some.sampled_from(IDS),
    some.fixed_dictionaries(
        {"title": some.sampled_from(["one", "two"])},
        optional={"priority": some.sampled_from([1, 2, "bad"]), "locks": some.just(["x"])},
    ),
    some.sampled_from([Standing.OPEN, Standing.OPEN, Standing.OPEN, *Standing]),
    some.lists(some.sampled_from([*IDS, "z"]), max_size=2, unique=True).map(tuple),
    some.sampled_from(["", "", "blocked by z"]),
    some.sampled_from([None, "G", "H"]),
)
FOUND = some.builds(
    Found,
    some.lists(ITEMS, max_size=6).map(tuple),
    some.just((Collection("G", "g", parent="H"), Collection("H", "h"))),
)
WISHES = some.fixed_dictionaries(
    {},
    optional={"sync": some.booleans(), "force": some.booleans(), "group": some.just("top")},
)
DEEDS = some.sampled_from(["lease", "finish", "edit", "cancel", "undo", "nothing"])


@given(some.lists(some.tuples(FOUND, WISHES, DEEDS), min_size=1, max_size=5))
def test_imports_keep_their_promises(steps: list[tuple[Found, dict[str, Any], str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        office = TestContext(Path(folder))
        for found, wishes, deed in steps:
            import_once(office, found, wishes)
            do(office, deed)


def import_once(office: TestContext, found: Found, wishes: dict[str, Any]) -> None:
    before = all_tasks(office)
    told = apply(office.context, "list", WHERE, found, ImportOptions(dry_run=True, **wishes))
    assert all_tasks(office) == before
    done = apply(office.context, "list", WHERE, found, ImportOptions(**wishes))
    assert told | {"dry_run": False, "import": done["import"]} == done
    after = all_tasks(office)
    for name, task in before.items():
        if task.attempts:
            assert after[name] == task, "what has started stays as it is"
    again: Any = apply(office.context, "list", WHERE, found, ImportOptions(**wishes))
    assert not any(again[part] for part in CHANGES), [again[part] for part in CHANGES]
    assert all_tasks(office) == after
    assert office.context.store.check() == []
    no_need_is_lost(office, found, after, done)


def no_need_is_lost(
    office: TestContext, found: Found, after: dict[str, Task], answer: ImportAnswer
) -> None:
    """Whatever an item waits for, its task waits for too: by needs, or by its source's hold."""
    with office.context.store.read() as reading:
        known = {item: str(entry["task"]) for item, entry in entries(reading, KEY).items()}
    first = {item.id: item for item in reversed(found.items)}
    named = {row["id"] for row in answer["skipped"]}
    for item in first.values():
        task = after.get(known.get(item.id, ""))
        if task is None or not untouched(task) or item.id in named:
            continue
        assert bool(item.blocked) <= bool(task.source_hold)
        for need in item.needs:
            over = need in first and first[need].standing is Standing.CLOSED
            assert over or known.get(need) in task.needs or task.source_hold, (item, task)


def do(office: TestContext, deed: str) -> None:
    """What people and workers do between two imports."""
    waiting = [task for task in all_tasks(office).values() if task.status is Status.QUEUED]
    if deed in ("lease", "finish"):
        for row in office.lease(1):
            if deed == "finish":
                office.finish(row["lease"])
    elif deed == "undo":
        with contextlib.suppress(NotFound, Refused):  # nothing was imported, or it was undone
            undo(office.context)
    elif waiting and deed == "edit":
        tasks.edit(office.context, [waiting[0].id], {"title": "ours"})
    elif waiting and deed == "cancel":
        tasks.cancel(office.context, [waiting[0].id])


def all_tasks(office: TestContext) -> dict[str, Task]:
    with office.context.store.read() as reading:
        return reading.tasks(str(entry["task"]) for entry in entries(reading, KEY).values())
