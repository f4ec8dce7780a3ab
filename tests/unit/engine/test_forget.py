"""What is left of tasks ends with their history: runs and copies; git is in tests/daemon."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

from fairlane.daemon.main import RunOptions
from fairlane.engine.compaction import compact
from fairlane.engine.forget import forget_compacted
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
