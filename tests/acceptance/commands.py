"""Calling `fairlane` as a user does, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests import warm
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one document on standard output; anything beside it is an error here."""
        read: dict[str, Any] = json.loads(self.out)
        return read


def fairlane(*arguments: object, text: str = "", **environment: str) -> Said:
    """One command; nothing of the user's own settings reaches it."""
    clean = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(ROOT / "src")}
    words, given = [str(word) for word in arguments], text.encode()
    if any(name.startswith("PYTHON") for name in environment):  # read when Python starts
        argv = [sys.executable, "-m", "fairlane", *words]
        cold = subprocess.run(
            argv, env=clean | environment, cwd=ROOT, input=given, capture_output=True,
            timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip
        return Said(cold.returncode, cold.stdout.decode(), cold.stderr.decode())
    done = warm.run(words, clean | environment, ROOT, given, LIMIT_SECONDS)
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())
