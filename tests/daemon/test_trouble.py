"""What goes wrong in one turn of the loop costs nobody else anything; damage ends it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from fairlane.runtime.lock import holder
from tests.daemon.world import World, is_zombie, until, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def sql(world: World, text: str) -> None:
    """Change the store behind everybody's back."""
    with closing(sqlite3.connect(world.home / "fairlane.db", timeout=30)) as store:
        store.execute(text)
        store.commit()


def test_an_end_that_cannot_be_taken_in_is_parked_alone(world: World) -> None:
    wait = f'until test -f "{world.marks}/go"; do sleep 0.02; done;'
    world.add(*(world.marking(name, 0, more=wait) for name in "abc"))
    sql(
        world,
        "CREATE TRIGGER broken BEFORE UPDATE ON attempts "
        "WHEN NEW.task = 'b' AND NEW.outcome = 'succeeded' "
        "BEGIN SELECT RAISE(ABORT, 'b may not succeed'); END",
    )
    pid = world.up()
    for name in "abc":
        world.started(name)
    (world.marks / "go").touch()
    until(lambda: set(world.statuses().values()) <= {"done", "parked"})
    assert world.statuses() == {"a": "done", "b": "parked", "c": "done"}
    assert "b may not succeed" in world.attempts("b")[0].detail
    assert not is_zombie(pid)
    world.fairlane("down")


BROKEN = (
    "CREATE TRIGGER broken BEFORE INSERT ON decisions "
    "BEGIN SELECT RAISE(ABORT, 'nothing is decided'); END"
)


def test_a_daemon_whose_first_round_fails_is_not_up(world: World) -> None:
    world.add(world.marking("a", 0))
    sql(world, BROKEN)
    with pytest.raises(AssertionError, match=r"did not come up: .*nothing is decided"):
        world.up()
    assert holder(world.home) is None
    sql(world, "DROP TRIGGER broken")
    world.up()
    until(lambda: world.statuses()["a"] == "done")
    world.fairlane("down")


def test_a_round_that_fails_is_said_once_and_tried_again(world: World) -> None:
    pid = world.up()
    sql(world, BROKEN)
    world.add(world.marking("a", 0))
    log = world.home / "daemon.log"
    until(lambda: "nothing is decided" in log.read_text())
    wait_for(1.0)
    assert log.read_text().count("nothing is decided") == 1
    assert not is_zombie(pid)
    sql(world, "DROP TRIGGER broken")
    until(lambda: world.statuses()["a"] == "done")
    world.fairlane("down")


def test_a_damaged_store_ends_the_daemon_with_that_message(world: World) -> None:
    world.add(world.marking("a", 0))
    world.fairlane("pause")
    pid = world.up()
    sql(world, "UPDATE tasks SET facts = '{\"title'")
    sql(world, "DELETE FROM pauses")
    sql(world, "INSERT INTO changes (version) SELECT max(version) + 1 FROM changes")  # it is news
    until(lambda: is_zombie(pid))
    assert "fairlane.db is damaged" in (world.home / "daemon.log").read_text()
    assert not (world.marks / "a").exists()
