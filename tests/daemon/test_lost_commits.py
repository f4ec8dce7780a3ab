"""`doctor` notices what a store that is whole cannot show: that its last commits are gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fairlane.model.record import changed
from tests.daemon import conftest as daemons
from tests.daemon.world import World, until
from tests.faults.places import Home

pytestmark = pytest.mark.slow
world = daemons.world


def findings(world: World, what: str) -> list[tuple[str, str, str]]:
    rows = Home(world.home)("doctor").document["findings"]
    return [(row["level"], row["message"], row["hint"]) for row in rows if row["what"] == what]


def test_a_log_that_is_removed_under_a_daemon(world: World) -> None:
    pid = world.up()
    world.add({"id": "t", "command": ["true"]})
    until(lambda: world.statuses() == {"t": "done"})
    assert {level for level, *_ in findings(world, "store")} == {"fine"}
    Path(f"{world.home}/fairlane.db-wal").unlink()
    wrong = [finding for finding in findings(world, "store") if finding[0] == "wrong"]
    assert f"fairlane.db-wal was removed while process {pid} writes there" in wrong[0][1]
    assert "fairlane down" in wrong[0][2]
    world.fairlane("down")
    assert "wrong" not in {level for level, *_ in findings(world, "store")}


def test_a_store_that_is_older_than_its_run_folders(world: World) -> None:
    world.add({"id": "t", "command": ["true"]}, {"id": "u", "command": ["true"], "needs": ["t"]})
    store = world.home / "fairlane.db"
    shutil.copy(store, world.home / "earlier")
    world.run()
    assert {level for level, *_ in findings(world, "store")} == {"fine"}
    (world.home / "earlier").replace(store)
    (_, (level, message, hint)) = findings(world, "store")
    assert (level, message.split(" left ")[0]) == ("note", "attempt 1 of u and 1 more")
    assert "fairlane.db-wal was removed" in hint
    world.run()
    assert {level for level, *_ in findings(world, "store")} == {"fine"}


def test_an_attempt_whose_executor_is_not_installed(world: World) -> None:
    world.add(world.waiting("t"))
    pid = world.up()
    world.started("t")
    until(lambda: world.statuses() == {"t": "running"})
    world.kill(pid)
    with world.context() as context, context.store.write() as tx:
        tx.put_attempts([changed(row, executor="my-cluster") for row in tx.open_attempts()])
    ((level, message, hint),) = findings(world, "executor")
    assert (level, message.partition(": ")[2]) == ("wrong", "no executor 'my-cluster'")
    assert hint.endswith("Or: fairlane cancel t.")
    world.let_go("t")
