"""The real programs, installed once into the user's cache folder, and a quiet place to run them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agents.running import Runner
from tests.npm_programs import installed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.agents.model_api import ModelApi

PACKAGES = ("@anthropic-ai/claude-code", "@openai/codex")


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with `claude` and `codex`, about 650 MB."""
    return installed("npm", PACKAGES, ("claude", "codex"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for words in (
        ["init", "-q", "-b", "main"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture
def runner_of(programs: Path, tmp_path: Path) -> Callable[[str, ModelApi], Runner]:
    """Runs an agent against a model API, with an empty home folder and nothing of this user."""
    home = tmp_path / "home"
    home.mkdir()
    return lambda agent, api: Runner(agent, api, programs, home)
