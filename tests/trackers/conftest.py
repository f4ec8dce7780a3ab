"""The real programs of trackers, and a world whose queue follows them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon.conftest import world
from tests.daemon.world import World
from tests.npm_programs import installed
from tests.waiting import LIMIT_SECONDS

__all__ = ["world"]
#: An agent that keeps its prompt, and fails where the prompt says so.
SETTINGS = """agent = "scribe"
[worker]
slots = 2
[agents.scribe]
argv = ["sh", "-c", 'printf "%s" "$2" > "$1/$FAIRLANE_TASK"; ! grep -q FAIL "$1/$FAIRLANE_TASK"',
  "sh", {marks}, "{{prompt}}"]
parser = "plain"
[[source]]
type = {source}
path = {project}
write_back = true
every = "1h"
"""
#: Runs the program in the project's folder and returns what it prints.
Program = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def backlog(project: Path) -> Program:
    """Backlog.md itself, with a board: 100 MB, a few seconds."""
    folder = installed("npm-backlog", ["backlog.md@1.52.0"], ["backlog"])
    call = _caller(folder / "backlog", project)
    call("init", "Shop", "--defaults", "--no-git", "--integration-mode", "none")
    return call


@pytest.fixture
def task_master(project: Path) -> Program:
    """task-master itself: 770 MB and about a minute without what it needs for models."""
    flags = ("--omit=optional", "--ignore-scripts")
    folder = installed("npm-task-master", ["task-master-ai@0.43.1"], ["task-master"], *flags)
    return _caller(folder / "task-master", project)


def _caller(program: Path, project: Path) -> Program:
    home = project.parent / "user"
    home.mkdir()
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1", "CI": "1"}
    clean |= {"TASKMASTER_SKIP_AUTO_UPDATE": "1"}

    def call(*words: str) -> str:
        done = subprocess.run(
            [str(program), *words], cwd=project, env=clean, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


def follow(world: World, source: str, project: Path) -> None:
    """A home folder that follows a project and writes back."""
    world.policy("retry.max_attempts = 1\n")
    texts = {"marks": str(world.marks), "source": source, "project": str(project)}
    world.settings(SETTINGS.format(**{name: json.dumps(text) for name, text in texts.items()}))
