"""`kill -9` before every statement: everything accepted is there, and nothing is there by half."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from fairlane.app import STORE_FILE
from fairlane.store.base import Booking
from fairlane.store.sqlite.file import backups
from fairlane.store.sqlite.store import SqliteStore
from tests.faults.children import Forks
from tests.faults.deeds import DEEDS, build, content

pytestmark = pytest.mark.slow
#: Deeds that say the same when they are done again after they were done.
REFUSED_AGAIN = {"fail": "lease_ended", "report": "", "cancel": "refused"}
CAP = 3


@pytest.fixture(scope="module")
def forks():
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    home = tmp_path_factory.mktemp("world") / "home"
    build(home)
    return home


def start(world: Path, home: Path, deed: str) -> None:
    """A home as it is before a deed."""
    home.mkdir(parents=True)
    for file in world.iterdir():
        if file.is_file() and not (deed == "first use" and file.name == STORE_FILE):
            shutil.copy(file, home / file.name)


class Walk:
    """One deed, killed at points of its way: whether it was done then, by point."""

    def __init__(self, deed: str, world: Path, forks: Forks, folder: Path) -> None:
        self.deed, self.world, self.forks, self.folder = deed, world, forks, folder
        start(world, folder / "whole", deed)
        self.before = content(folder / "whole" / STORE_FILE)
        whole = forks.child(deed, folder / "whole")
        assert "done" in whole, whole
        self.last = whole["points"]
        self.after = content(folder / "whole" / STORE_FILE)
        assert self.before != self.after
        self.states: dict[int, bool] = {}

    def visit(self, points: Iterable[int]) -> None:
        """Kill it there, look at what is left, and do it again."""
        for at in points:
            home = self.folder / str(at)
            start(self.world, home, self.deed)
            told = self.forks.child(self.deed, home, at)
            assert told == {"killed": True}, f"point {at}"
            done = found_after(self.deed, home, self.before, self.after, at)
            again(self.deed, home, self.forks, self.after, done=done)
            self.states[at] = done
            shutil.rmtree(home)

    def hold(self) -> None:
        """What was done is not undone."""
        states = [self.states[at] for at in sorted(self.states)]
        assert self.states[1] is False
        assert self.states[self.last] is True
        assert states == sorted(states), self.states


@pytest.mark.parametrize("deed", DEEDS)
def test_a_killed_deed_is_done_or_not_done(deed, world, forks, tmp_path, record_property):
    """At every fourth point, and at all of those between which it becomes done."""
    walk = Walk(deed, world, forks, tmp_path)
    walk.visit(sorted({*range(1, walk.last, 4), walk.last}))
    undone = max(at for at, done in walk.states.items() if not done)
    walk.visit(range(undone + 1, min(at for at, done in walk.states.items() if done)))
    walk.hold()
    seen = f"{len(walk.states)} of {walk.last} points, all of them whole"
    record_property("told", f"kill -9 during {deed}: {seen}")


@pytest.mark.soak(seconds=90)
def test_a_killed_deed_is_done_or_not_done_at_every_point(
    world, forks, tmp_path, soak_seconds_left, record_property
):
    """The whole walk: half a minute of forks, of which `make test` goes a part."""
    points = 0
    for deed in DEEDS:
        if soak_seconds_left() <= 0:
            break
        walk = Walk(deed, world, forks, tmp_path / deed.replace(" ", "-"))
        walk.visit(range(1, walk.last + 1))
        walk.hold()
        points += walk.last
    record_property("told", f"kill -9 at {points} points in a row, all of them whole")


def test_a_deed_in_two_halves_is_found(world, forks, tmp_path):
    start(world, tmp_path / "whole", "careless")
    before = content(tmp_path / "whole" / STORE_FILE)
    points = forks.child("careless", tmp_path / "whole")["points"]
    after = content(tmp_path / "whole" / STORE_FILE)
    start(world, tmp_path / "half", "careless")
    forks.child("careless", tmp_path / "half", points - 5)
    with pytest.raises(AssertionError, match="half done"):
        found_after("careless", tmp_path / "half", before, after, points - 5)


def test_a_killed_compaction_goes_on(world, forks, tmp_path, record_property):
    """What it has done stays done, every sum is whole, and the next one ends as one would have."""
    deed = "compact in parts"
    start(world, tmp_path / "whole", deed)
    sums = used(tmp_path / "whole" / STORE_FILE)
    whole = forks.child(deed, tmp_path / "whole")
    after = content(tmp_path / "whole" / STORE_FILE)
    seen = set()
    for at in range(1, whole["points"] + 1, 3):
        home = tmp_path / str(at)
        start(world, home, deed)
        assert forks.child(deed, home, at) == {"killed": True}, f"point {at}"
        sound(home / STORE_FILE, at)
        assert used(home / STORE_FILE) == sums, f"point {at}"
        found = content(home / STORE_FILE)
        seen.add(found)
        if found != after:
            assert forks.child(deed, home)["done"] == whole["done"], f"point {at}"
            assert content(home / STORE_FILE) == after, f"point {at}"
        shutil.rmtree(home)
    assert len(seen) > 5
    record_property("told", f"kill -9 during {deed}: {len(seen)} states, and each was gone on with")


def used(file: Path) -> dict[str, Booking]:
    """All that was ever used, by scope."""
    store = SqliteStore.open(file)
    try:
        with store.read() as reading:
            return reading.usage_sums("", 0)
    finally:
        store.close()


def found_after(deed: str, home: Path, before: str, after: str, at: int) -> bool:
    """Whether the deed is done; a store in between the two is damage."""
    file = home / STORE_FILE
    for backup in backups(file):
        assert content(backup) == before, f"point {at}: {backup} is not whole"
    found = content(file)
    assert found in (before, after), f"{deed}, point {at}: half done"
    if found:
        if deed != "migrate":  # its schema is one that this program does not know
            sound(file, at)
        return found == after
    return False


def sound(file: Path, at: int) -> None:
    """The store is content; one holder a task, and no more than the cap in flight."""
    store = SqliteStore.open(file)
    try:
        assert store.check() == [], f"point {at}"
        with store.read() as reading:
            flying, attempts = reading.in_flight(), reading.open_attempts()
            assert len(flying) <= CAP
            assert sorted(task.id for task in flying) == sorted(each.task for each in attempts)
            for task in flying:
                tries = reading.attempts(task.id)
                assert task.lease is not None
                assert task.lease.fence == max(each.fence for each in tries)
                assert [each.number for each in tries] == list(range(1, task.attempts + 1))
    finally:
        store.close()


def again(deed: str, home: Path, forks: Forks, after: str, *, done: bool) -> None:
    """What was not done can be done now; what was done is not done twice."""
    told = forks.child(deed, home)
    if not done:
        assert "done" in told, told
        assert content(home / STORE_FILE) == after
        return
    assert "done" in told or deed in REFUSED_AGAIN, told
    if deed == "lease":
        assert told["done"]["leases"] == []
    elif deed == "complete":
        assert told["done"]["code"] == "already_done"
    elif deed == "add":
        assert not any(row["created"] for row in told["done"]["tasks"])
    elif deed == "reclaim":
        assert told["done"]["reclaimed"] == []
    elif deed == "compact":
        assert told["done"]["tasks"] == 0
    if deed != "migrate":
        sound(home / STORE_FILE, 0)
