"""What every source must do. A plug-in's test needs no more than a sample of its source:

pytest.register_assert_rewrite("fairlane.testing")

class TestMySource(SourceSuite):
    source = "my-source"              # as `fairlane import` names it

    @pytest.fixture
    def sample(self, tmp_path):
        return make(tmp_path)         # a `Sample`, in that folder and nowhere else

Sources of this repository have their sample in `tests/conformance/samples/FILE.py`, where FILE is
the name of the source's file (`queue_json.py`), with one function `make(folder: Path) -> Sample`.
A source that asks a program gets `Where(command=…)` with a small script in the same folder that
prints what the program would; its data lies in the folder too. What the script is asked, it may
write to `calls.jsonl` there: that file is its own and not the source's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fairlane.clock import FixedClock
from fairlane.engine.context import Context
from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Item, Standing, Where, Writable, WriteBack
from fairlane.model.documents.sources import ImportAnswer
from fairlane.model.errors import FairlaneError, Invalid, NotFound
from fairlane.model.instant import SECOND, Instant, parse_instant
from fairlane.model.project import Group
from fairlane.model.record import dataclass
from fairlane.model.task import Status, Task
from fairlane.service import pull
from fairlane.service.sync.close import undo
from fairlane.service.sync.importing import ImportOptions, bring_in
from fairlane.service.sync.mapping import live_entries, source_key
from fairlane.service.sync.write_back import tell
from fairlane.service.tasks import edit
from fairlane.settings import Settings
from fairlane.store.memory.store import MemoryStore

NOON = parse_instant("2026-01-30T12:00:00Z")


@dataclass(frozen=True, slots=True)
class Sample:
    """A source with known items, made in a folder of the test's own.

    At least three items are open, wait for nothing and name no project but `default`. Beside them
    there may be others, such as closed, taken, blocked or broken ones, and collections.
    """

    where: Where
    #: Every item that is open and waits for nothing, by the source's ids, in its order.
    ids: tuple[str, ...]
    #: Gives an item another title, in the source.
    retitle: Callable[[str, str], None]
    #: The item is over, in the source: closed, checked, removed.
    close: Callable[[str], None]
    #: Adds one more record, which is broken, and returns its id or a word of its place by which
    #: `skipped` names it. None: nothing in this source can be broken alone; then say why.
    spoil: Callable[[], str] | None = None
    never_broken: str = ""
    #: Of a source that can be told: all its text but for what telling changes.
    kept: Callable[[], bytes] | None = None


class SourceSuite:
    """All cases; each takes a fixture `sample` that gives a `Sample` in the test's `tmp_path`."""

    source: str

    @pytest.fixture
    def context(self, tmp_path_factory: pytest.TempPathFactory) -> Context:
        """An empty queue."""
        home = tmp_path_factory.mktemp("home")
        return Context(home, MemoryStore(), Settings.parse({}), FixedClock(NOON), "ann")

    # What it tells

    def test_it_tells_its_open_items_in_its_order(self, sample: Sample) -> None:
        found = source_named(self.source).read(sample.where).items
        free = [item.id for item in found if item.standing is Standing.OPEN]
        free = [name for name in free if not _waits(found, name)]
        assert len(sample.ids) >= 3
        assert free == list(sample.ids)

    def test_it_says_the_same_when_asked_again(self, sample: Sample) -> None:
        assert source_named(self.source).read(sample.where) == source_named(self.source).read(
            sample.where
        )

    def test_what_is_not_there_is_named(self, tmp_path: Path) -> None:
        missing = tmp_path / "nothing" / "here"
        with pytest.raises(FairlaneError) as refusal:
            source_named(self.source).read(Where(missing, command=(str(missing),)))
        assert str(missing) in refusal.value.message
        assert refusal.value.hint

    # What becomes of it

    def test_every_item_becomes_a_task_that_knows_it(
        self, context: Context, sample: Sample
    ) -> None:
        answer = self._bring_in(context, sample)
        tasks = self._tasks(context, sample)
        assert {task.id for task in tasks.values()} <= {row["id"] for row in answer["created"]}
        for item in sample.ids:
            assert tasks[item].status is Status.QUEUED
            assert tasks[item].title or tasks[item].prompt
            assert tasks[item].meta["source"] == self.source
            assert tasks[item].meta["source_id"] == item

    def test_a_full_queue_takes_what_fits_and_the_rest_later(
        self, context: Context, sample: Sample
    ) -> None:
        limits = "caps.all = 1\nbackpressure.soft = 0\nbackpressure.hard = 1\n"
        context.policy_file.write_text(limits, encoding="utf-8")
        first = self._bring_in(context, sample)
        assert first["deferred"]
        ended: set[str] = set()
        while not self._are_over(context, sample, ended):
            (lease,) = pull.lease(context, 1, "box")["leases"]
            pull.finish(context, str(lease["lease"]))
            ended.add(lease["task"])
            self._bring_in(context, sample, sync=True)

    def _are_over(self, context: Context, sample: Sample, ended: set[str]) -> bool:
        tasks = self._tasks(context, sample)
        return len(tasks) == len(sample.ids) and {task.id for task in tasks.values()} <= ended

    def test_a_second_import_writes_nothing(self, context: Context, sample: Sample) -> None:
        first = self._bring_in(context, sample)
        before = _trace(context)
        second = self._bring_in(context, sample)
        assert second["unchanged"] == [row["id"] for row in first["created"]]
        assert _nothing_came_of(second)
        assert _trace(context) == before

    def test_a_dry_run_tells_what_the_import_does_and_leaves_no_trace(
        self, context: Context, sample: Sample
    ) -> None:
        before = _trace(context)
        told = self._bring_in(context, sample, dry_run=True)
        assert _trace(context) == before
        done = self._bring_in(context, sample)
        assert (told["dry_run"], told["import"], done["import"]) == (True, None, 1)
        assert told | {"dry_run": False, "import": 1} == done

    def test_only_what_was_named_is_imported(self, context: Context, sample: Sample) -> None:
        answer = self._bring_in(context, sample, ids=(sample.ids[1],))
        assert [row["id"] for row in answer["created"]] == [self._task(context, sample, 1).id]
        with pytest.raises(NotFound, match="no-such-item"):
            self._bring_in(context, sample, ids=("no-such-item",))

    def test_nothing_of_the_source_is_written(
        self, context: Context, sample: Sample, tmp_path: Path
    ) -> None:
        before = _content(tmp_path)
        self._bring_in(context, sample, dry_run=True)
        self._bring_in(context, sample)
        undo(context)
        self._bring_in(context, sample, sync=True)
        assert _content(tmp_path) == before

    # What changes

    def test_a_change_is_followed_where_nothing_has_started(
        self, context: Context, sample: Sample
    ) -> None:
        self._bring_in(context, sample)
        sample.retitle(sample.ids[0], "Quite another title")
        answer = self._bring_in(context, sample)
        task = self._task(context, sample, 0)
        assert [row["id"] for row in answer["changed"]] == [task.id]
        assert "title" in answer["changed"][0]["fields"]
        assert "Quite another title" in task.title
        assert _nothing_came_of(self._bring_in(context, sample))

    def test_what_has_started_stays_as_it_is(self, context: Context, sample: Sample) -> None:
        self._bring_in(context, sample)
        lease = self._lease(context, sample, 0)
        before = self._task(context, sample, 0)
        assert _nothing_came_of(self._bring_in(context, sample))
        sample.retitle(sample.ids[0], "Quite another title")
        answer = self._bring_in(context, sample)
        assert [row["id"] for row in answer["conflicts"]] == [before.id]
        assert "started" in answer["conflicts"][0]["reason"]
        assert (answer["changed"], self._task(context, sample, 0)) == ([], before)
        pull.finish(context, lease)
        self._bring_in(context, sample, sync=True)
        assert self._task(context, sample, 0).status is Status.DONE

    def test_what_a_person_changed_wins(self, context: Context, sample: Sample) -> None:
        self._bring_in(context, sample)
        edit(context, [self._task(context, sample, 0).id], {"title": "As people want it"})
        assert _nothing_came_of(self._bring_in(context, sample))
        sample.retitle(sample.ids[0], "Quite another title")
        answer = self._bring_in(context, sample)
        task = self._task(context, sample, 0)
        assert task.title == "As people want it"
        assert [row["id"] for row in answer["conflicts"]] == [task.id]
        assert "title" in answer["conflicts"][0]["reason"]

    def test_a_sync_cancels_what_was_closed_before_it_started(
        self, context: Context, sample: Sample
    ) -> None:
        self._bring_in(context, sample, sync=True)
        task = self._task(context, sample, 1)
        sample.close(sample.ids[1])
        answer = self._bring_in(context, sample, sync=True)
        assert [row["id"] for row in answer["canceled"]] == [task.id]
        assert self.source in answer["canceled"][0]["reason"]
        with context.store.read() as reading:
            assert reading.statuses([task.id]) == {task.id: Status.CANCELED}
        assert _nothing_came_of(self._bring_in(context, sample, sync=True))

    def test_what_was_undone_can_come_again(self, context: Context, sample: Sample) -> None:
        first = self._bring_in(context, sample)
        created = sorted(row["id"] for row in first["created"])
        assert sorted(row["id"] for row in undo(context)["canceled"]) == created
        again = self._bring_in(context, sample)
        assert sorted(row["id"] for row in again["created"]) == created
        assert self._task(context, sample, 0).status is Status.QUEUED

    # What is broken

    def test_a_bad_record_is_named_and_the_rest_comes_in(
        self, context: Context, sample: Sample
    ) -> None:
        if sample.spoil is None:
            assert sample.never_broken, "say why nothing in this source can be broken alone"
            return
        word = sample.spoil()
        before = _trace(context)
        with pytest.raises(Invalid, match="bad record"):
            self._bring_in(context, sample, strict=True)
        assert _trace(context) == before
        answer = self._bring_in(context, sample)
        named = [f"{row['id']} {row['where']}" for row in answer["skipped"]]
        assert any(word in name for name in named), named
        assert all(row["reason"] for row in answer["skipped"])
        assert self._tasks(context, sample).keys() == set(sample.ids)

    # What is told back

    def test_telling_twice_is_telling_once(
        self, context: Context, sample: Sample, tmp_path: Path
    ) -> None:
        source = source_named(self.source)
        if not isinstance(source, Writable):
            return
        assert sample.kept is not None, "a source that can be told gives what telling must keep"
        kept = sample.kept()
        statuses = (None, "queued", "leased", "running", "parked", "queued", "done")
        for at, (last, status) in enumerate(pairwise(statuses)):
            told = [_told(sample.ids[0], str(status), NOON + at * SECOND, last)]
            source.write(sample.where, told)
            after = _content(tmp_path)
            assert source.write(sample.where, told) == []
            assert _content(tmp_path) == after
            assert sample.kept() == kept
        items = {item.id: item for item in source_named(self.source).read(sample.where).items}
        assert sample.ids[0] not in items or items[sample.ids[0]].standing is Standing.CLOSED

    def test_what_was_told_is_no_news(self, context: Context, sample: Sample) -> None:
        if not isinstance(source_named(self.source), Writable):
            return
        self._bring_in(context, sample, sync=True)
        lease = self._lease(context, sample, 0)
        self._told_and_read_in_peace(context, sample)
        pull.finish(context, lease)
        self._told_and_read_in_peace(context, sample)
        assert tell(context, self.source, sample.where) == {"written": [], "failed": []}
        assert self._task(context, sample, 0).status is Status.DONE

    def _told_and_read_in_peace(self, context: Context, sample: Sample) -> None:
        assert sample.ids[0] in tell(context, self.source, sample.where)["written"]
        answer = self._bring_in(context, sample, sync=True)
        assert not answer["canceled"]
        assert not answer["conflicts"]
        assert not answer["created"]

    def test_who_closes_an_item_at_work_on_it_starts_nothing_too_early(
        self, context: Context, sample: Sample
    ) -> None:
        self._bring_in(context, sample, sync=True)
        lease = self._lease(context, sample, 0)
        task = self._task(context, sample, 0).id
        with context.store.read() as reading:
            after = reading.dependents(task)
            needed = {need for each in reading.tasks(after).values() for need in each.needs}
        for item, each in self._tasks(context, sample).items():
            if item == sample.ids[0] or each.id in needed:  # so that they wait for nothing else
                sample.close(item)
        self._bring_in(context, sample, sync=True)
        leased = {row["task"] for row in pull.lease(context, 100, "box")["leases"]}
        assert not leased.intersection(after)
        pull.finish(context, lease)

    # Inside

    def _bring_in(self, context: Context, sample: Sample, **wishes: Any) -> ImportAnswer:
        return bring_in(context, self.source, sample.where, ImportOptions(**wishes))

    def _tasks(self, context: Context, sample: Sample) -> dict[str, Task]:
        """The tasks of the sample's items, by item."""
        with context.store.read() as reading:
            known = live_entries(reading, source_key(self.source, sample.where))
            names = {item: known[item]["task"] for item in sample.ids if item in known}
            tasks = reading.tasks(names.values())
        return {item: tasks[name] for item, name in names.items()}

    def _task(self, context: Context, sample: Sample, at: int) -> Task:
        return self._tasks(context, sample)[sample.ids[at]]

    def _lease(self, context: Context, sample: Sample, at: int) -> str:
        """An attempt at one item's task."""
        task = self._task(context, sample, at).id
        edit(context, [task], {"priority": -1_000})
        row = pull.lease(context, 1, "box")["leases"][0]
        assert row["task"] == task
        return str(row["lease"])


def _waits(found: Iterable[Item], name: str) -> bool:
    item = next(item for item in found if item.id == name)
    over = {each.id for each in found if each.standing is Standing.CLOSED}
    return bool(item.blocked or item.parked or set(item.needs) - over)


def _nothing_came_of(answer: Mapping[str, object]) -> bool:
    parts = ("created", "changed", "canceled", "conflicts", "groups")
    return answer["import"] is None and not any(answer[part] for part in parts)


def _trace(context: Context) -> tuple[object, ...]:
    """All that a transaction leaves: its number, its events, the tasks."""
    with context.store.read() as reading:
        events = reading.events(limit=1_000_000)
        return reading.mark(), events, reading.table(Group), reading.tallies()


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "calls.jsonl"
    }


def _told(item: str, status: str, at: Instant, last: str | None) -> WriteBack:
    facts: dict[str, Any] = {"attempts": 1, "failures": 0, "lease": None, "lease_expires_at": None}
    facts["told"] = last
    if status in ("leased", "running"):
        facts |= {"lease": "l1", "lease_expires_at": NOON + 60 * SECOND}
    reason = "failed: exit 1 (attempt 3 of 3)" if status == "parked" else ""
    return WriteBack(item, item, status, at, reason, facts)
