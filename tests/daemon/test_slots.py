"""The daemon uses as many slots as the settings say, else as many as cap `all` lets run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.daemon.world import World, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def until_gate(world: World, number: int) -> list[dict[str, Any]]:
    """Tasks that run until there is a file `gate`."""
    wait = f'while [ ! -e "{world.home / "gate"}" ]; do sleep 0.1; done;'
    return [world.marking(f"t{each}", 0.0, more=wait) for each in range(number)]


def in_flight(world: World) -> int:
    return Counter(world.statuses().values())["running"]


def slots(world: World) -> list[tuple[int, int]]:
    rows = world.fairlane("worker", "list")["workers"]
    return [(row["slots"], len(row["tasks"])) for row in rows]


def test_a_raised_cap_is_used_at_once(world: World) -> None:
    world.settings("")
    world.policy("caps.all = 4\n")
    world.add(*until_gate(world, 6))
    world.up()
    until(lambda: in_flight(world) == 4)
    assert slots(world) == [(4, 4)]
    world.policy("caps.all = 6\n")
    until(lambda: in_flight(world) == 6)
    assert slots(world) == [(6, 6)]
    (world.home / "gate").touch()
    until(lambda: set(world.statuses().values()) == {"done"})


def test_a_run_starts_what_the_plan_promised(world: World) -> None:
    world.settings("")
    world.policy('preset = "depth-first"\n')
    marks = f'while [ $(ls "{world.marks}" | wc -l) -lt 6 ]; do sleep 0.1; done;'
    world.add(*(world.marking(f"t{each}", 0.0, more=marks) for each in range(6)))
    assert len(world.fairlane("plan")["picks"]) == 6
    world.run()  # each waits until all six have begun
    assert set(world.statuses().values()) == {"done"}
    assert world.most_in_flight() == 6
