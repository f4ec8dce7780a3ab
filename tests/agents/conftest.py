"""The real programs, installed once into the user's cache folder, and a quiet place to run them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agents.running import Runner

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.agents.model_api import ModelApi

PACKAGES = ("@anthropic-ai/claude-code", "@openai/codex")
#: About 650 MB, once.
INSTALL_SECONDS = 900


def cache_folder() -> Path:
    named = os.environ.get("FAIRLANE_TEST_PROGRAMS")
    return Path(named) if named else Path.home() / ".cache" / "fairlane-tests" / "npm"


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with `claude` and `codex`; tests are skipped where it cannot be had."""
    folder = cache_folder()
    bin_folder = folder / "node_modules" / ".bin"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "install.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # tests run in several processes
        if not all((bin_folder / name).exists() for name in ("claude", "codex")):
            install(folder)
    return bin_folder


def install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: claude and codex cannot be had")
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", *PACKAGES]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm install took longer than {INSTALL_SECONDS} s")
    if done.returncode != 0:
        pytest.skip(f"npm install failed: {done.stderr.strip()[-200:]}")


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
