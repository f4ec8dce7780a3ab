"""The walk in the document is what happens: one shell, from its first line to its last."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest

from tests.acceptance.commands import ROOT
from tests.acceptance.test_docs import blocks, commands
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.slow
MARK = "---8<---"
DEFAULT_PORT = "7117"


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def test_the_walk_over_http(tmp_path):
    assert shutil.which("curl"), "this walk is one with curl: install it (apt-get install curl)"
    walk = [
        line
        for sort, text in blocks("docs/http.md")
        if sort == "console"
        for line in commands(text)
    ]
    port = free_port()
    (tmp_path / ".local/state/fairlane").mkdir(parents=True)
    (tmp_path / ".local/state/fairlane/fairlane.toml").write_text(f"server.port = {port}\n")
    program = tmp_path / "bin" / "fairlane"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairlane "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    script = "".join(f"{command}\necho\necho '{MARK}'\n" for command, _ in walk)
    done = subprocess.run(
        ["sh", "-s"],
        input=script.replace(DEFAULT_PORT, port),
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.stderr == ""
    said = done.stdout.replace(port, DEFAULT_PORT).split(f"{MARK}\n")
    for (command, shown), printed in zip(walk, said[:-1], strict=True):
        assert printed.strip() == shown.strip(), command
