"""No agent prints its way out of its limits, or past its time, or into another one's."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairlane.agents.contract import OutputLine
from fairlane.executors.base import Handle
from fairlane.runtime import watch
from fairlane.runtime.watch import RunningAttempt, RunningAttempts
from tests.daemon.world import World, until

pytestmark = pytest.mark.timeout(180)

LIMIT = 100_000
PRINTER = '[agents.printer]\nargv = ["{{command}}"]\nparser = "demo"\ngrace = "{}"\n'
RESULT = {"type": "result", "outcome": "succeeded", "tokens": {"input": 7, "output": 5}}


@pytest.fixture(params=["process", "tmux"])
def printing(world: World, request: pytest.FixtureRequest) -> World:
    if request.param == "tmux":
        shutil.which("tmux") or pytest.skip("tmux is missing")
    worker = f'[worker]\nslots = 10\nexecutor = "{request.param}"\n'
    world.settings(f"{worker}[log]\nmax_bytes = {LIMIT}\n{PRINTER.format('1s')}")
    world.policy("retry.max_attempts = 1\n")
    return world


def printer(name: str, program: str) -> dict[str, Any]:
    head = (
        "import json, os, time\n"
        f"result = {RESULT!r}\n"
        "say = lambda record: print(json.dumps(record), flush=True)\n"
    )
    return {"id": name, "agent": "printer", "command": [sys.executable, "-c", head + program]}


def size_of(world: World, task: str, file: str) -> int:
    return (world.home / "runs" / task / "1" / file).stat().st_size


@pytest.mark.slow
def test_final_records_are_within_the_limit_however_many_there_are(printing: World) -> None:
    name = f"many-{printing.home.parent.name[-12:]}".replace("_", "-")
    many = "for n in range(2000): say(result | dict(text='x' * 1000, tokens=dict(input=n)))"
    printing.add(printer(name, many))
    printing.run()
    (attempt,) = printing.attempts(name)
    assert (attempt.outcome, attempt.tokens) == (
        "succeeded",
        (1999, 0, 0, 0),
    )  # the last one counts
    assert size_of(printing, name, "stdout.log") < LIMIT + 2 * 1200
    assert size_of(printing, name, "events.jsonl") <= LIMIT


@pytest.mark.slow
def test_final_records_give_no_more_time(printing: World) -> None:
    """It ends at all: an agent that renews its grace runs until somebody stops it."""
    name = f"grace-{printing.home.parent.name[-12:]}".replace("_", "-")
    printing.add(printer(name, "while True:\n    say(result)\n    time.sleep(0.05)"))
    printing.run()
    (attempt,) = printing.attempts(name)
    assert attempt.outcome == "succeeded"
    record = json.loads((printing.home / "runs" / name / "1" / "exit.json").read_text())
    assert record["stopped"] == "grace"


@pytest.mark.slow
def test_a_log_that_its_agent_makes_longer_is_read_to_a_limit(world: World) -> None:
    world.policy("retry.max_attempts = 1\n")
    grow = 'truncate -s 1T "$FAIRLANE_RUN/stdout.log" "$FAIRLANE_RUN/events.jsonl"; echo end'
    world.add({"id": "t", "command": ["sh", "-c", grow]})
    world.run()
    assert world.attempts("t")[0].outcome == "succeeded"
    assert size_of(world, "t", "stdout.log") > 1 << 40


@pytest.mark.slow
def test_a_task_starts_and_ends_while_others_print_without_end(world: World) -> None:
    world.policy("caps.all = 10\n")
    world.add(*({"id": f"loud{n}", "command": ["yes", "a word"]} for n in range(2)))
    world.up()
    logs = [world.home / "runs" / f"loud{n}" / "1" / "stdout.log" for n in range(2)]
    until(lambda: all(log.exists() and log.stat().st_size > 1 << 20 for log in logs))
    for name in ("a", "b", "c"):
        world.add({"id": name, "command": ["true"]})
    until(lambda: {world.statuses()[name] for name in ("a", "b", "c")} == {"done"})
    assert {world.statuses()[f"loud{n}"] for n in range(2)} == {"running"}
    world.fairlane("cancel", *(f"loud{n}" for n in range(2)))
    until(lambda: {world.statuses()[f"loud{n}"] for n in range(2)} == {"canceled"})
    world.fairlane("down")


class Reading:
    """A clock that moves by one part of a turn with every part that is read."""

    def __init__(self, parts: int) -> None:
        self.now, self._step = 0.0, watch.TURN_SECONDS / parts
        self.reads: list[str] = []

    def monotonic(self) -> float:
        return self.now

    def catch_up(self, lease: str) -> bool:
        self.now += self._step
        self.reads.append(lease)
        return lease != "quiet"


def test_logs_are_read_in_turn_and_for_a_while_only() -> None:
    clock = Reading(parts=10)
    host: Any = SimpleNamespace(clock=clock)
    running = RunningAttempts(host)
    for lease in ("loud1", "loud2", "quiet", "loud3"):
        attempt: Any = SimpleNamespace(
            settling=False,
            progress=1,
            reported=0,
            catch_up=lambda lease=lease: clock.catch_up(lease),
        )
        running.attempts[lease] = attempt
    assert set(running.progress()) == {"loud1", "loud2", "quiet", "loud3"}
    assert len(clock.reads) <= 11
    assert clock.reads[:4] == ["loud1", "loud2", "quiet", "loud3"]
    counts = Counter(clock.reads)
    assert counts["quiet"] == 1
    for _ in range(10):
        running.progress()
    counts = Counter(clock.reads)
    assert max(counts.values()) - min(counts[f"loud{n}"] for n in (1, 2, 3)) <= 1
    assert counts["quiet"] >= 10


def test_events_begin_anew_where_a_log_is_read_again(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "t" / "1"
    run.mkdir(parents=True)
    (run / "events.jsonl").write_text("of the daemon before\n")
    lines: Any = SimpleNamespace(more=lambda room: ["one"], at=0)
    parser: Any = SimpleNamespace(FINAL=(), line=lambda line: [OutputLine("text", line)])
    nothing: Any = None
    attempt = RunningAttempt(nothing, Handle(run), nothing, parser, lines, 60)
    for _ in range(5):
        attempt.catch_up()
    kept = (run / "events.jsonl").read_text().splitlines()
    assert kept == ['{"kind": "text", "text": "one"}']
