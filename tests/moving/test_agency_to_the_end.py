"""A whole board of Agency with a real daemon: converted, followed, run to the end, told back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import World, until
from tests.moving import agency

pytestmark = pytest.mark.slow

ENDS = ("succeeded", "failed", "launch_failed", "lost", "released", "stopped")


class Project:
    """A board on disk and the home folder that follows it."""

    def __init__(self, world: World, cards: list[tuple[str, str, bool]], most: int = 3) -> None:
        """`cards`: phase, flow and whether it is parallel."""
        self.world, self.folder = world, world.home / "project"
        self.board = agency.Board(self.folder, most, {"implement": 2, "review": 1, "research": 1})
        file = self.board.write_config(queue="")
        for number, (phase, flow, parallel) in enumerate(cards):
            name = f"1.{number}-step"
            path = self.folder / phase / "backlog" / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            card = agency.Card(f"{phase}/{name}", phase, flow, parallel, path)
            path.write_text(agency.text_of(card, "idle"), "utf-8")
            self.board.cards.append(card)
        (world.home / "policy.toml").unlink()
        (world.home / "fairlane.toml").unlink()
        world.fairlane("convert", "agency", str(file), "--write")

    def work(self, script: str) -> None:
        """What the agent does, in place of Codex, and the source that is followed."""
        with (self.world.home / "fairlane.toml").open("a") as settings:
            argv = json.dumps(["sh", "-c", script])
            settings.write(f'[agents.codex]\nparser = "plain"\nargv = {argv}\n')
            settings.write('[[source]]\ntype = "cards"\npath = "project"\nwrite_back = true\n')

    def says(self) -> Counter[str]:
        return Counter(status(card.path) for card in self.board.cards)


def status(card: Path) -> str:
    """The status in the front matter."""
    lines = card.read_text("utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith("agent_status:")]
    return line.partition(":")[2].strip()


def in_flight(world: World) -> list[dict[str, Any]]:
    """After each start, what is in flight."""
    with world.context() as context, context.store.read() as reading:
        events = reading.events(limit=100_000)
        tasks = reading.tasks({event.task for event in events if event.task})
    flying: dict[str, Any] = {}
    moments = []
    for event in events:
        if event.kind == "leased" and event.task:
            flying[event.task] = tasks[event.task]
            moments.append(dict(flying))
        elif event.kind in ENDS and "attempt" in event.data and event.task:
            del flying[event.task]
    assert not flying
    return moments


def test_a_large_board_is_worked_off_and_every_card_says_so(world):
    phases = ["phase-1-core", "phase-2-api", "phase-3-ui", "phase-10-docs"]
    kinds = [*agency.FLOWS, "implement", "implement"]
    cards = [
        (phases[number // 18], kinds[number % 5], number % 3 == 0) for number in range(66)
    ]  # fmt: skip
    project = Project(world, cards)
    project.work("exit 0")
    (row,) = world.fairlane("sync", "--dry-run")["sources"]
    hard = 2 * max(4 * 3, 8)
    assert (len(row["created"]), len(row["deferred"])) == (hard + 3, 66 - hard - 3)
    assert project.says() == {"idle": 66}
    world.up()
    until(lambda: project.says() == {"succeeded": 66})
    world.fairlane("down")
    assert Counter(world.statuses().values()) == {"done": 66}
    deepest = 0
    for moment in in_flight(world):
        flows = Counter(task.kind for task in moment.values())
        serial = Counter((task.group, task.kind) for task in moment.values() if not task.parallel)
        assert len(moment) <= 3
        assert all(flows[flow] <= most for flow, most in project.board.per_flow.items())
        assert set(serial.values()) <= {1}
        deepest = max(deepest, len(moment))
    assert deepest >= 2
    for card in project.board.cards:
        text = card.path.read_text("utf-8")
        assert text.count("Fairlane: succeeded") == 1
        assert "owner: ann  # keeps it\n" in text


def test_a_raised_cap_and_a_card_that_is_put_back_work_while_the_daemon_runs(world):
    project = Project(world, [("phase-1", "implement", True)] * 4, most=1)
    go = world.home / "go"
    project.work(f'while ! test -e "{go}"; do sleep 0.05; done; exit 0')
    world.up()
    until(lambda: project.says() == {"running": 1, "queued": 3})
    world.fairlane("policy", "set", "caps.all=4", "caps.kind:implement=3")
    until(lambda: project.says() == {"running": 3, "queued": 1})
    go.touch()
    until(lambda: project.says() == {"succeeded": 4})
    go.unlink()
    card = project.board.cards[0].path
    card.write_text(card.read_text("utf-8").replace("status: succeeded", "status: idle"), "utf-8")
    until(lambda: project.says() == {"succeeded": 3, "running": 1})
    go.touch()
    until(lambda: project.says() == {"succeeded": 4})
    world.fairlane("down")
    told = [line for line in card.read_text("utf-8").splitlines() if "- Fairlane: " in line]
    words = [line.rpartition(": ")[2] for line in told]
    assert words.count("succeeded") == 2
    assert Counter(world.statuses().values()) == {"done": 4}
