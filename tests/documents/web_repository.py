"""A small repository with a home folder, in which the commands that documents show are typed."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.acceptance.commands import ROOT
from tests.waiting import LIMIT_SECONDS

FILES = {
    "Makefile": "test:\n\t@python3 -B -m unittest -q\n",
    "login.py": "def log_in(users, name, password):\n    return users[name] == password\n",
    "test_start.py": (
        "import unittest\n\n\nclass Start(unittest.TestCase):\n"
        "    def test_import(self):\n        import login\n"
    ),
}
HOME_SHOWN = "~/.local/state/fairlane"


class Web(NamedTuple):
    """Where commands are typed."""

    repo: Path
    home: Path
    environment: dict[str, str]

    def type_in(self, command: str) -> str:
        """What a command prints, errors too; the home folder as documents write it."""
        done = subprocess.run(
            ["sh", "-c", f"{command} 2>&1"], cwd=self.repo, env=self.environment,
            capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip
        return done.stdout.rstrip().replace(str(self.home), HOME_SHOWN)

    def on_terminal(self, command: str, columns: int = 80) -> str:
        """What it prints on a terminal, with colours."""
        ours, its = pty.openpty()
        size = {"COLUMNS": str(columns), "TERM": "xterm-256color", "PAGER": "cat"}
        with subprocess.Popen(
            ["sh", "-c", command], cwd=self.repo, env=self.environment | size,
            stdin=subprocess.DEVNULL, stdout=its, stderr=its,
        ):  # fmt: skip
            os.close(its)
            parts = b"".join(iter(lambda: _read(ours), b""))
        os.close(ours)
        text = parts.decode().replace("\r\n", "\n").rstrip()
        return text.replace(str(self.home), HOME_SHOWN)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""


def make_web(folder: Path) -> Web:
    """The repository with its first commit, and `fairlane` and `claude` on the path."""
    repo, home, programs = folder / "web", folder / ".local/state/fairlane", folder / "bin"
    for each in (repo, programs):
        each.mkdir(parents=True)
    for name, text in FILES.items():
        (repo / name).write_text(text)
    acting = (ROOT / "tests/documents/acts_as_claude.py").read_text()
    _program(programs / "claude", f"#!{sys.executable}\n{acting}")
    _program(programs / "fairlane", f'#!/bin/sh\nexec "{sys.executable}" -m fairlane "$@"\n')
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(folder), "LANG": "C.UTF-8",
    }  # fmt: skip
    web = Web(repo, home, environment)
    who = "-c user.name=Ada -c user.email=ada@example.org"
    web.type_in(f"git init -q -b main && git add . && git {who} commit -q -m 'First version'")
    return web


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
