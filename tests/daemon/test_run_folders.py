"""A run folder is the agent's to damage: it costs that attempt, and nobody else anything."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import World, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def replaced(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    file.write_text(text, encoding="utf-8")


def huge(file: Path) -> None:
    replaced(file, "")
    os.truncate(file, 1 << 40)


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def linked(file: Path) -> None:
    file.rename(f"{file}.good")
    file.symlink_to(f"{file}.good")


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def folder_linked(file: Path) -> None:
    away = file.parents[3] / f"away-{file.parent.parent.name}"
    shutil.move(file.parent, away)
    file.parent.symlink_to(away)


def runner_damaged(file: Path) -> None:
    file.unlink()
    replaced(file.parent / "runner.json", '{"pid": "1/../self", "agent_pid": -1}')


#: What is done to the `exit.json` of an attempt, and what is said of it.
DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "deep": (lambda file: replaced(file, "[" * 50_000), "exit.json is not JSON"),
    "list": (lambda file: replaced(file, "[]"), "exit.json is not JSON"),
    "text": (lambda file: replaced(file, "\xff{"), "exit.json is not JSON"),
    "types": (lambda file: replaced(file, '{"exit_code": "0"}'), "exit.json: exit_code is '0'"),
    "huge": (huge, "exit.json is too large"),
    "fifo": (fifo, "exit.json is no regular file"),
    "linked": (linked, "exit.json is a symbolic link"),
    "folder": (folder, "exit.json is no regular file"),
    "moved": (folder_linked, "is a symbolic link"),
    "runner": (runner_damaged, "runner.json: pid is '1/../self'"),
}


def test_damaged_ends_cost_their_own_attempts_at_the_next_start(world: World) -> None:
    world.policy("retry.max_attempts = 1\ncaps.all = 20\n")
    world.settings("[worker]\nslots = 20\n")
    wait = f'until test -f "{world.marks}/go"; do sleep 0.02; done'
    names = [*DAMAGE, "good"]
    world.add(*(world.marking(name, 0, more=f"{wait};") for name in names))
    pid = world.up()
    for name in names:
        world.started(name)
    world.kill(pid)
    (world.marks / "go").touch()
    ends = {name: world.home / "runs" / name / "1" / "exit.json" for name in names}
    for file in ends.values():
        until(file.exists)
    for name, (damage, _) in DAMAGE.items():
        damage(ends[name])
    world.run()
    assert world.statuses() == dict.fromkeys(DAMAGE, "parked") | {"good": "done"}
    for name, (_, said) in DAMAGE.items():
        (attempt,) = world.attempts(name)
        assert (attempt.outcome, said in attempt.detail) == ("failed", True), (name, attempt.detail)
    assert world.processes() == []


def damaging(name: str, script: str, end: str = "exit 0") -> dict[str, Any]:
    """A task whose agent works in its own run folder."""
    return {"id": name, "command": ["sh", "-c", f'cd "$FAIRLANE_RUN"; {script}; {end}']}


def test_nothing_that_an_agent_puts_into_its_run_folder_is_followed_or_waited_for(
    world: World, tmp_path: Path
) -> None:
    world.policy('retry.max_attempts = 2\nretry.base = "0s"\n')
    victims = {name: tmp_path / name for name in ("events", "result", "prompt", "dangling")}
    for name in ("events", "result", "prompt"):
        victims[name].write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    swap = "rm -f {0}; ln -s {1} {0}"
    prompt = f"mkdir -p ../2; ln -s {victims['prompt']} ../2/prompt.md"
    world.add(
        damaging("out", "rm stdout.log; mkfifo stdout.log", "exit 1"),
        damaging("err", "rm stderr.log; mkfifo stderr.log"),
        damaging("events", swap.format("events.jsonl", victims["events"]) + "; echo words"),
        damaging("result", swap.format("result.json", victims["result"])),
        damaging("dangling", swap.format("result.json", victims["dangling"])),
        damaging("prompt", prompt, 'test "$FAIRLANE_ATTEMPT" = 2'),
        damaging("before", "mkdir -p ../2; mkfifo ../2/stdout.log", "exit 1"),
        damaging("moved", f"cd ..; mv 1 gone; ln -s {elsewhere} 1", "exit 1"),
        damaging("next", "test -e ../2 || ln -s / ../2", "exit 1"),
        damaging("beside", f"ln -s {victims['result']} exit.json.new", "exit 0"),
    )
    world.up()
    ended = ("done", "parked")
    until(lambda: all(each in ended for each in world.statuses().values()))
    good = ("err", "events", "result", "dangling", "prompt", "beside")
    bad = ("out", "next", "before", "moved")
    assert world.statuses() == dict.fromkeys(good, "done") | dict.fromkeys(bad, "parked")
    assert "stdout.log is no regular file" in world.attempts("out")[0].detail
    assert "is a symbolic link" in world.attempts("next")[1].detail
    assert "is a symbolic link" in world.attempts("moved")[0].detail
    assert list(elsewhere.iterdir()) == []
    assert "stdout.log" in world.attempts("before")[1].detail
    assert [victims[name].read_text() for name in ("events", "result", "prompt")] == ["mine"] * 3
    assert not victims["dangling"].exists()
    assert json.loads((world.home / "runs/result/1/result.json").read_text())["task"] == "result"
    assert (world.home / "runs" / "err" / "1" / "stderr.log").is_fifo()
    with pytest.raises(AssertionError, match=r"stderr.log is no regular file"):
        world.fairlane("logs", "err", "--stderr")
    world.fairlane("down")
