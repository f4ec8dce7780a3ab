"""What is left of tasks ends with their history: runs and copies; git is in tests/daemon."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

from fairlane.daemon import history
from fairlane.daemon.main import RunOptions
from fairlane.engine import compaction
from fairlane.engine.compaction import compact
from fairlane.engine.forget import forget_compacted
from fairlane.model.errors import TryLater
from fairlane.model.instant import DAY, SECOND
from tests.unit.contexts import TestContext
from tests.unit.runtime.daemons import InlineThreads, World


@pytest.fixture
def office(tmp_path: Path) -> TestContext:
    """Two tasks that have ended a month and more ago, of which one is needed still."""
    office = TestContext(tmp_path)
    office.add({"id": "old"}, {"id": "needed"}, {"id": "waits", "needs": ["needed"]})
    for lease in office.lease():
        office.finish(lease["lease"])
    office.wait(31 * DAY)
    compact(office.context)
    return office


def fill(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text("words\n")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_runs_and_logs_of_checks_are_removed(office: TestContext, tmp_path: Path):
    runs, outside = tmp_path / "runs", fill(tmp_path / "outside")
    fill(runs / "old" / "1")
    fill(runs / "old" / "1.check.0")
    (runs / "old" / "1" / "link").symlink_to(outside)  # an agent can leave anything here
    (runs / "old" / "2").symlink_to(outside)
    fill(runs / "needed" / "1")
    fill(runs / "not-ours" / "1")
    forget_compacted(office.context, 30 * DAY)
    assert names(runs) == ["needed", "not-ours"]
    assert names(outside) == ["stdout.log"]


def test_a_link_in_the_place_of_its_runs_is_not_followed(office: TestContext, tmp_path: Path):
    outside = fill(tmp_path / "outside")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "old").symlink_to(outside)
    forget_compacted(office.context, 30 * DAY)
    assert names(tmp_path / "runs") == []
    assert names(outside) == ["stdout.log"]


def test_a_copy_stays_while_somebody_works_in_it(office: TestContext, tmp_path: Path):
    copy = fill(tmp_path / "open" / "old" / "src")
    long_ago = (office.context.now() - 40 * DAY) // SECOND
    for path in (copy, copy.parent):
        os.utime(path, (long_ago, long_ago))
    now = office.context.now() // SECOND
    os.utime(copy / "stdout.log", (now, now))
    forget_compacted(office.context, 30 * DAY)
    assert names(copy) == ["stdout.log"]
    os.utime(copy / "stdout.log", (long_ago, long_ago))
    forget_compacted(office.context, 30 * DAY)
    assert names(tmp_path / "open") == []


def test_what_a_crash_left_is_found_by_the_next_daemon(tmp_path: Path, monkeypatch):
    """It died when the tasks were compacted, and their runs were there still."""
    world = World(tmp_path)
    world.policy('history.keep = "1d"\n')
    world.add("a")
    world.run()
    world.clock.at += 3 * DAY
    with monkeypatch.context() as patch:
        patch.setattr(history, "forget_compacted", lambda *words: None)
        world.run()
    assert names(tmp_path / "runs") == ["a"]
    world.clock.at += DAY
    world.run()
    assert names(tmp_path / "runs") == []


def test_a_daemon_that_ends_leaves_the_rest_to_the_next(tmp_path: Path, monkeypatch):
    """A compaction ends after its part; what is left of its tasks goes when it is through."""
    monkeypatch.setattr(compaction, "PART", 1)
    world = World(tmp_path)
    world.policy('history.keep = "1d"\n')
    world.add("a", "b")
    world.run()
    world.clock.at += 3 * DAY
    daemon = world.daemon()
    daemon._history._closing = True
    daemon.run(RunOptions(until_idle=True))
    assert names(tmp_path / "runs") == ["a", "b"]
    world.run()
    assert names(tmp_path / "runs") == []
    with world.store.read() as reading:
        assert [event.data["tasks"] for event in reading.events(kind="compacted")] == [2]


def test_an_error_of_a_compaction_reaches_the_loop(tmp_path: Path, monkeypatch):
    def full(*_: object) -> None:
        raise TryLater("no room left to write the store", "Free some.", "disk_full")

    world = World(tmp_path)
    world.policy('history.keep = "1d"\n')
    world.add("a")
    world.run()
    world.clock.at += 3 * DAY
    monkeypatch.setattr(history, "compact", full)
    found = history.History(world.context, InlineThreads)
    found.look(world.context.policy(), lambda: False)
    with pytest.raises(TryLater, match="no room left"):
        found.look(world.context.policy(), lambda: False)


def test_the_daemon_forgets_in_a_thread_of_its_own(tmp_path: Path, monkeypatch):
    """Git and folders take their time; the loop does not wait for them."""
    world = World(tmp_path)
    world.policy('history.keep = "1d"\n')
    world.add("a")
    world.run()
    world.clock.at += 3 * DAY
    world.add("b")
    daemon, thread = world.daemon(), InlineThreads()
    monkeypatch.setattr(daemon._history, "_thread", thread)
    later: list[Callable[[], object]] = []

    def submit(work: Callable[..., object], *words: object) -> Future[object]:
        later.append(partial(work, *words))
        return Future()

    monkeypatch.setattr(thread, "submit", submit)
    daemon.run(RunOptions(until_idle=True))
    assert names(tmp_path / "runs") == ["a", "b"]
    (shrink,) = later
    daemon._history._closing = False
    shrink()
    assert names(tmp_path / "runs") == ["b"]
