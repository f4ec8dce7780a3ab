"""`kill -9` before every statement: everything accepted is there, and nothing is there by half."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fairlane.app import STORE_FILE
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
    home.mkdir()
    for file in world.iterdir():
        if file.is_file() and not (deed == "first use" and file.name == STORE_FILE):
            shutil.copy(file, home / file.name)


@pytest.mark.parametrize("deed", DEEDS)
def test_a_killed_deed_is_done_or_not_done(deed, world, forks, tmp_path, record_property):
    start(world, tmp_path / "whole", deed)
    before = content(tmp_path / "whole" / STORE_FILE)
    whole = forks.child(deed, tmp_path / "whole")
    assert "done" in whole, whole
    after = content(tmp_path / "whole" / STORE_FILE)
    assert before != after
    states = []
    for at in range(1, whole["points"] + 1):
        home = tmp_path / str(at)
        start(world, home, deed)
        told = forks.child(deed, home, at)
        assert told == {"killed": True}, f"point {at}"
        states.append(found_after(deed, home, before, after, at))
        again(deed, home, forks, after, done=states[-1])
        shutil.rmtree(home)
    assert states[0] is False
    assert states[-1] is True
    assert states == sorted(states), "what was done is not undone"
    record_property("told", f"kill -9 during {deed}: {len(states)} points, all of them whole")


def test_a_deed_in_two_halves_is_found(world, forks, tmp_path):
    start(world, tmp_path / "whole", "careless")
    before = content(tmp_path / "whole" / STORE_FILE)
    points = forks.child("careless", tmp_path / "whole")["points"]
    after = content(tmp_path / "whole" / STORE_FILE)
    start(world, tmp_path / "half", "careless")
    forks.child("careless", tmp_path / "half", points - 5)
    with pytest.raises(AssertionError, match="half done"):
        found_after("careless", tmp_path / "half", before, after, points - 5)


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
