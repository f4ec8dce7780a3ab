"""One tmux session an attempt; the same run folder, the same ends."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.daemon.world import World, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


def tmux(*words: str) -> str:
    done = subprocess.run(["tmux", *words], capture_output=True, text=True, check=False)
    return done.stdout


def test_an_attempt_in_a_session_can_be_watched_and_ends_as_usual(world: World) -> None:
    world.settings('[worker]\nexecutor = "tmux"\n')
    name = f"watched-{world.home.parent.name[-12:]}".replace("_", "-")
    world.add(world.waiting(name, more="echo look here;"))
    world.up()
    world.started(name)
    session = f"fairlane-{name}-1"
    assert session in tmux("ls")
    until(lambda: "look here" in tmux("capture-pane", "-p", "-t", session))
    world.let_go(name)
    until(lambda: world.statuses()[name] == "done")
    until(lambda: session not in tmux("ls"))
    log = world.home / "runs" / name / "1" / "stdout.log"
    assert log.read_text() == "look here\n"
    assert not (log.parent / "orders").exists()
