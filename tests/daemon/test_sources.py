"""Configured sources, real daemons: noticed at once, told back, and never in the way."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.samples.beads import STAND_IN, bead
from tests.daemon.world import World, is_zombie, until, wait_for

pytestmark = pytest.mark.slow


DEMO = """agent = "demo"
[worker]
slots = 4
[agents.demo.env]
FAIRLANE_DEMO_SECONDS = "{seconds}"
FAIRLANE_DEMO_FAIL = "0"
FAIRLANE_DEMO_THROTTLE = "0"
"""


def source(**values: Any) -> str:
    """A source in the settings; JSON's text and lists are TOML's too."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "[[source]]\n" + "\n".join(lines) + "\n"


def append(path: Path, **row: Any) -> None:
    with path.open("a") as file:
        file.write(json.dumps({"agent": "shell", "command": ["true"]} | row) + "\n")


def test_a_line_in_a_file_becomes_a_task_without_a_command(world: World) -> None:
    file = world.home / "tasks.jsonl"
    append(file, id="first")
    world.settings(source(type="jsonl", path="tasks.jsonl", every="1h"))
    world.up()
    until(lambda: world.statuses().get("first") == "done")
    append(file, id="second")
    until(lambda: world.statuses().get("second") == "done")
    world.fairlane("pause")
    append(file, id="third")
    until(lambda: world.statuses().get("third") == "queued")
    rows = file.read_text().splitlines()
    beside = world.home / "new"
    beside.write_text("\n".join(rows[:2]) + "\n")
    beside.replace(file)  # as editors save
    until(lambda: world.statuses()["third"] == "canceled")
    world.fairlane("down")


def test_a_source_that_hangs_stalls_no_cycle_and_no_shutdown(world: World) -> None:
    pids = world.home / "pids"
    script = f'echo $$ >> "{pids}"; sleep 3600 & echo $! >> "{pids}"; wait'
    world.settings(source(type="github", command=["sh", "-c", script], every="1s"))
    world.up()
    until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    world.add({"id": "a", "command": ["true"]})
    until(lambda: world.statuses()["a"] == "done")
    world.fairlane("down")
    for pid in map(int, pids.read_text().split()):
        until(partial(is_zombie, pid))
    kinds = {row["kind"] for row in world.fairlane("events")["events"]}
    assert "succeeded" in kinds
    assert "source_failed" not in kinds  # nobody waited until the source had used up its time


#: Stands in for `bd`, which is not installed here: it lists one bead, and hangs when it is told.
BD = """
case "$1" in
  list|ready) echo '[{"id": "a", "title": "A", "status": "open"}]' ;;
  *) echo $$ >> "PIDS"; sleep 3600 & echo $! >> "PIDS"; wait ;;
esac
"""


def test_a_source_that_hangs_when_it_is_told_is_in_nobodys_way(world: World) -> None:
    pids, program = world.home / "pids", world.home / "bd"
    program.write_text(BD.replace("PIDS", str(pids)))
    rule = source(type="beads", command=["sh", str(program)], write_back=True)
    world.settings(DEMO.format(seconds=0.1) + rule)
    world.up()
    until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    world.add({"id": "b", "command": ["true"]})
    until(lambda: world.statuses() == {"a": "done", "b": "done"})
    world.fairlane("down")  # it gives up after two minutes, the source after ten
    told = pids.read_text().split()
    for pid in map(int, told):
        until(partial(is_zombie, pid))
    assert pids.read_text().split() == told  # and no other was started on the way out


def test_a_source_that_fails_changes_nothing_and_is_said_once(world: World) -> None:
    file = world.home / "queue.json"
    entry = {"id": "q-1", "repo": "/r", "status": "pending"}
    file.write_text(json.dumps({"schemaVersion": 1, "entries": [entry]}))
    world.settings(source(type="queue.json", path="queue.json"))
    world.fairlane("pause")
    world.up()
    until(lambda: world.statuses() == {"q-1": "queued"})
    file.write_text("{ half")

    def failed() -> int:
        rows = world.fairlane("events")["events"]
        return sum(row["kind"] == "source_failed" for row in rows)

    until(failed)
    file.write_text("{ half of")
    file.write_text("{ half of it")
    assert world.statuses() == {"q-1": "queued"}
    (warning,) = world.fairlane("status")["warnings"]
    assert warning["code"] == "source"
    assert "not JSON" in warning["message"]
    file.write_text(json.dumps({"schemaVersion": 1, "entries": []}))
    until(lambda: world.statuses() == {"q-1": "canceled"})
    assert world.fairlane("status")["warnings"] == []
    assert failed() == 1
    world.fairlane("down")


def test_a_program_is_polled_and_its_blocked_item_is_freed(world: World) -> None:
    queue = world.home / "issues.json"
    issue = {"number": 7, "title": "Mend it", "state": "OPEN"}
    blocker = {"number": 3, "state": "OPEN", "url": "https://github.com/o/r/issues/3"}
    queue.write_text(json.dumps([issue | {"blockedBy": [blocker]}]))
    agent = '[agents.demo]\nargv = ["true"]\nparser = "plain"\n'
    rule = source(type="github", command=["cat", str(queue)], every="200ms")
    world.settings(f'agent = "demo"\n{rule}{agent}')
    world.up()
    until(lambda: world.statuses() == {"gh-7": "queued"})
    (hold,) = world.fairlane("why", "gh-7")["holds"]
    assert hold["code"] == "source"
    assert "#3" in hold["reason"]
    queue.write_text(json.dumps([issue]))
    until(lambda: world.statuses() == {"gh-7": "done"})
    world.fairlane("down")


CARD = """---
owner: ann   # keeps it
agent_flow: code
agent_status:
parallelizable: true
---
# Mend the {name}

Notes:
- as it was
"""


class Cards:
    """A repository of cards on which the demo agent works."""

    def __init__(self, world: World, *names: str, seconds: float = 0.1) -> None:
        self.root = world.home / "cards"
        self.folder = self.root / "phase-1-fences" / "backlog"
        self.folder.mkdir(parents=True)
        for name in names:
            self.path(name).write_text(CARD.format(name=name))
        rule = source(type="cards", path="cards", write_back=True)
        world.settings(DEMO.format(seconds=seconds) + rule)
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "cards"]):
            self.git(*words)

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
        done = subprocess.run(
            ["git", *who, *words], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.md"

    def status(self, name: str) -> str:
        lines = self.path(name).read_text().splitlines()
        return next(line for line in lines if line.startswith("agent_status")).partition(": ")[2]

    def history(self, name: str) -> list[str]:
        lines = self.path(name).read_text().splitlines()
        return [line.rpartition(": ")[2] for line in lines if "- Fairlane: " in line]

    def changes(self) -> list[str]:
        """The lines that `git diff` shows, without their place."""
        lines = self.git("diff", "-U0").splitlines()
        return [each for each in lines if each[0] in "+-" and each[:3] not in ("+++", "---")]


def test_a_card_follows_its_task_and_nothing_else_of_it_changes(world: World) -> None:
    cards = Cards(world, "fence")
    go = world.marks / "go"
    work = ["sh", "-c", f'while ! test -e "{go}"; do sleep 0.05; done']
    with (world.home / "fairlane.toml").open("a") as settings:
        settings.write(f'[agents.demo]\nparser = "plain"\nargv = {json.dumps(work)}\n')
    world.fairlane("pause")
    world.up()
    until(lambda: cards.status("fence") == "queued")
    world.fairlane("resume")
    until(lambda: cards.status("fence") == "running")
    assert list(world.statuses().values()) in (["leased"], ["running"])
    go.touch()
    until(lambda: cards.status("fence") == "succeeded")
    world.fairlane("down")
    assert cards.history("fence") == ["queued", "running", "succeeded"]
    removed, added, *rest = cards.changes()
    assert (removed, added) == ("-agent_status:", "+agent_status: succeeded")
    told = [line for line in rest if line not in ("+", "+History:")]
    assert len(told) == 3
    assert all("- Fairlane: " in line for line in told)


def test_beads_are_claimed_and_closed_in_their_order(world: World) -> None:
    """With a stand-in for `bd`, which cannot be run here."""
    program, kept = world.home / "bd.py", world.home / "beads.json"
    program.write_text(STAND_IN)
    edge = {"depends_on_id": "gt-1", "type": "blocks"}
    kept.write_text(
        json.dumps([bead("gt-2", "Second", dependencies=[edge]), bead("gt-1", "First")])
    )
    command = [sys.executable, str(program)]
    rule = source(type="beads", command=command, every="300ms", write_back=True)
    world.settings(DEMO.format(seconds=0.4) + rule)
    world.up()

    def told() -> dict[str, str]:
        try:
            return {each["id"]: each["status"] for each in json.loads(kept.read_text())}
        except ValueError:  # it is being written
            return {}

    until(lambda: told() == {"gt-1": "closed", "gt-2": "closed"})
    world.fairlane("down")
    assert world.statuses() == {"gt-1": "done", "gt-2": "done"}
    calls = [json.loads(line) for line in (world.home / "calls.jsonl").read_text().splitlines()]
    deeds = [(call[2], call[3]) for call in calls if call[2] in ("update", "close")]
    assert [name for _, name in deeds] == sorted(name for _, name in deeds)
    assert ("close", "gt-1") in deeds
    assert deeds[-1] == ("close", "gt-2")


def test_run_asks_once_at_its_start_and_tells_as_it_goes(world: World) -> None:
    cards = Cards(world, "fence", "gate")
    document = world.run()
    assert document["ended"] == 2
    for name in ("fence", "gate"):
        assert cards.history(name)[-1] == "succeeded"
        assert cards.status(name) == "succeeded"
    before = cards.git("diff")
    world.run()
    assert cards.git("diff") == before


def test_run_works_off_more_than_the_queue_takes(world: World) -> None:
    names = [f"card-{number}" for number in range(9)]
    cards = Cards(world, *names, seconds=0.05)
    world.policy("caps.all = 2\nbackpressure.soft = 1\nbackpressure.hard = 1\n")
    assert world.run()["ended"] == len(names)
    assert {cards.status(name) for name in names} == {"succeeded"}
    assert world.most_in_flight() == 2


def test_sync_cancels_what_was_closed_before_it_started(world: World) -> None:
    cards = Cards(world, "fence", "gate")
    assert len(world.fairlane("sync")["sources"][0]["created"]) == 2
    assert cards.status("gate") == "queued"
    card = cards.path("gate")
    card.write_text(card.read_text().replace("agent_status: queued", "agent_status: canceled"))
    (row,) = world.fairlane("sync")["sources"]
    (canceled,) = row["canceled"]
    assert world.statuses()[canceled["id"]] == "canceled"
    assert canceled["reason"] == "closed in cards"
    assert sorted(world.statuses().values()) == ["canceled", "queued"]
    assert cards.status("gate") == "canceled"  # the person's word stays


def test_a_kill_during_write_back_leaves_cards_whole_and_is_made_up_for(world: World) -> None:
    names = [f"card-{number:02}" for number in range(12)]
    cards = Cards(world, *names, seconds=0.05)
    draw = random.Random(7)
    for _ in range(6):
        pid = world.up()
        wait_for(draw.uniform(0.0, 0.5))
        world.kill(pid)
        for name in names:
            text = cards.path(name).read_text()
            assert text.endswith("\n")
            assert text.count("agent_status") == 1
            assert text.startswith("---\nowner: ann   # keeps it\nagent_flow: code\n")
    world.run()
    world.fairlane("sync")
    assert set(world.statuses().values()) == {"done"}
    for name in names:
        told = cards.history(name)
        assert told[-1] == cards.status(name) == "succeeded"
        assert told == [word for at, word in enumerate(told) if at == 0 or told[at - 1] != word]
    assert not list(cards.folder.glob(".*"))
