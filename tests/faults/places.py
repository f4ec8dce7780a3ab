"""Places where nothing can be kept: a full disk, a disk for reading only, a file that is held."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import ROOT, Said, fairlane
from tests.waiting import LIMIT_SECONDS

#: Runs a command with another patience than half a minute.
IMPATIENT = """
from fairlane.store.sqlite.store import SqliteStore
SqliteStore.open.__func__.__kwdefaults__["busy_seconds"] = 0.3
from fairlane.cli.main import main
main()
"""


@contextmanager
def small_disk(folder: Path, size: str, inodes: int = 0) -> Iterator[Path]:
    """A disk of its own, as small as asked; skipped where none may be mounted."""
    folder.mkdir()
    options = f"size={size},nr_inodes={inodes}" if inodes else f"size={size}"
    words = ["mount", "-t", "tmpfs", "-o", options, "fairlane-test", str(folder)]
    try:
        mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small disk: {error}")
    if mounted.returncode:
        pytest.skip(f"no small disk: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def for_reading_only(folder: Path) -> None:
    """What is mounted here can no longer be written, not even by root."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Another connection is in the middle of a write."""
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def command(*arguments: object, code: str | None = None, file_bytes: int | None = None) -> Said:
    """One command of which files may not grow past a size, or which runs other code."""

    def limit() -> None:
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    start = ["-c", code] if code else ["-m", "fairlane"]
    done = subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
        capture_output=True,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT / "src")},
        preexec_fn=limit,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


class Home:
    """A home folder, and commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "fairlane.db"

    def __call__(self, *arguments: object, text: str = "") -> Said:
        return fairlane(*arguments, "--home", self.folder, "--json", text=text)

    def done(self, *arguments: object, text: str = "") -> dict[str, Any]:
        """A command that must work."""
        said = self(*arguments, text=text)
        assert said.code == 0, said
        return said.document

    def ids(self) -> list[str]:
        return [row["id"] for row in self.done("list")["tasks"]]


def refused(said: Said, exit_code: int, code: str, message: str = "", hint: str = "") -> None:
    """A clear error: how it ends, what it says, what to do."""
    assert said.code == exit_code, said
    assert "Traceback" not in said.err
    error = said.document["error"]
    assert error["code"] == code, error
    assert message in error["message"], error
    assert hint in error["hint"], error
    assert error["hint"], error
