"""A second daemon finds the run folders that a malicious agent damaged: each costs one attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlane.executors.runner import marked
from tests.attackers.test_tricks import root, tell
from tests.attackers.tricks import list_rest
from tests.attackers.tricks.ground import Ground
from tests.daemon.world import until

__all__ = ["root"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TRICKS = [trick for trick in list_rest.FOLDERS if trick.group == "run folder"]

#: The folder is gone, so nobody knows; the agent itself ended with 1.
OTHERWISE = ("lost", "failed: exit 1")


def reason(attempt: Any) -> str:
    """How an attempt ended, without what differs."""
    failed = attempt.outcome == "failed"
    return f"failed: {attempt.detail.partition(':')[0]}" if failed else str(attempt.outcome)


@pytest.fixture
def ground(root: Path) -> Iterator[Ground]:
    """A ground on which every agent that damages its folder runs at the same time."""
    ground = Ground(root, TRICKS, "", slots=len({trick.attempt for trick in TRICKS}) + 1)
    ground.stay = True
    yield ground
    ground.world.let_go(*ground.batches)


def test_a_second_daemon_settles_all(ground: Ground, record_property) -> None:
    """The first one is killed while agents run: half of them end before the second one comes."""
    world, names = ground.world, list(ground.batches)
    before = ground.digest()
    ground.begin()
    until(lambda: ground.notes().keys() == {trick.name for trick in TRICKS})
    world.kill(ground.daemon)
    early = names[::2]
    world.let_go(*early)
    runs = [str(world.home / "runs" / name / "1") for name in early]
    until(lambda: not any(marked(run) for run in runs))
    ground.daemon = world.up()
    world.let_go(*names)
    assert set(ground.settled(names).values()) <= {"done", "parked"}
    attempts = {name: world.attempts(name) for name in names}
    assert {name: len(each) for name, each in attempts.items()} == dict.fromkeys(names, 1)
    said = Counter(reason(each) for (each,) in attempts.values())
    assert said.keys() == {"succeeded", "failed: its run folder is damaged", *OTHERWISE}, said
    ground.end()
    assert ground.harm(before) == {}
    world.fairlane("down")
    assert "Traceback" not in (world.home / "daemon.log").read_text()
    tell(record_property, "a second daemon over damaged run folders", TRICKS)
