"""A command that forks from a warm process is the command that `python -m fairlane` is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm

pytestmark = pytest.mark.slow


def cold(words: list[str], env: dict[str, str], cwd: Path, given: bytes) -> tuple[int, bytes]:
    line = [sys.executable, "-m", "fairlane", *words]
    done = subprocess.run(line, env=env, cwd=cwd, input=given, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("line", "code"),
    [("--help", 0), ("list --json", 0), ("show nobody", 1), ("lsit", 2)],
)
def test_it_says_and_ends_the_same(line: str, code: int, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "FAIRLANE_HOME": str(tmp_path), "TZ": "Asia/Tokyo"}
    add = warm.run(["add", "-", "--id", "t1"], env, tmp_path, b"of the standard input")
    assert add.returncode == 0, add.stderr
    said = warm.run(line.split(), env, tmp_path)
    assert (said.returncode, said.stdout + said.stderr) == cold(line.split(), env, tmp_path, b"")
    assert said.returncode == code


def test_its_folder_and_mask_are_the_callers(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        said = warm.run(["--home", "here", "add", "x"], {"PATH": os.environ["PATH"]}, tmp_path)
    finally:
        os.umask(before)
    assert said.returncode == 0, said.stderr
    assert (tmp_path / "here" / "fairlane.db").stat().st_mode & 0o777 == 0o600


def test_it_is_ended_when_it_takes_too_long(tmp_path: Path) -> None:
    words = ["--home", str(tmp_path), "lease", "--wait", "1h"]
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(words, {"PATH": os.environ["PATH"]}, tmp_path, seconds=1)
