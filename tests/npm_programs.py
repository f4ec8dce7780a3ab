"""Real programs of others, installed by npm once into the user's cache folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

INSTALL_SECONDS = 900


def cache_folder(name: str) -> Path:
    """Where the programs of this name are; `FAIRLANE_TEST_PROGRAMS` names another place."""
    named = os.environ.get("FAIRLANE_TEST_PROGRAMS")
    return (Path(named) if named else Path.home() / ".cache" / "fairlane-tests") / name


def installed(name: str, packages: Sequence[str], programs: Sequence[str], *flags: str) -> Path:
    """The folder with these programs; tests are skipped where they cannot be had."""
    folder = cache_folder(name)
    bin_folder = folder / "node_modules" / ".bin"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "install.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # tests run in several processes
        if not all((bin_folder / program).exists() for program in programs):
            _install(folder, packages, flags)
    return bin_folder


def _install(folder: Path, packages: Sequence[str], flags: Sequence[str]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm is not installed: {', '.join(packages)} cannot be had")
    quiet = ("--no-audit", "--no-fund")
    command = [npm, "install", "--prefix", str(folder), *quiet, *flags, *packages]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm install took longer than {INSTALL_SECONDS} s")
    if done.returncode != 0:
        pytest.skip(f"npm install failed: {done.stderr.strip()[-200:]}")
