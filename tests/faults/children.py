"""Real processes that can be killed: one that forks, and a child that ends itself at a point.

A point is the moment before a statement, before a page is copied by a backup, before a file is
changed, or before the answer is given. Points are counted from 1.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.faults.deeds import EVERY

ROOT = Path(__file__).parents[2]
#: What Python tells its audit hooks when it is about to change the file system.
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.truncate", "os.chmod", "os.link")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Points:
    """Counts points, and ends this process at one of them as `kill -9` does."""

    def __init__(self, at: int | None) -> None:
        self.at, self.passed = at, 0

    def pass_one(self, *_: object) -> None:
        self.passed += 1
        if self.passed == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """From here on everything that is kept passes points."""
        points = self

        class Watched(sqlite3.Connection):
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **options)
                self.set_trace_callback(points.pass_one)

            def backup(self, target: sqlite3.Connection, **_: Any) -> None:
                super().backup(target, pages=8, progress=points.pass_one)

        real = sqlite3.connect

        def connect(*args: Any, **options: Any) -> sqlite3.Connection:
            found: sqlite3.Connection = real(*args, factory=Watched, **options)
            return found

        sqlite3.connect = connect  # type: ignore[assignment]
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and isinstance(args[2], int) and _writes(args)):
            self.pass_one()


def _writes(args: tuple[Any, ...]) -> bool:
    return bool(args[2] & _WRITES) and not str(args[0]).startswith("/dev/")


def _work(request: dict[str, Any], answer: int) -> None:
    """The child: one deed in one home."""
    points = Points(request["at"])
    points.watch()
    try:
        told = {"done": EVERY[request["deed"]](Path(request["home"]))}
    except BaseException as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    points.pass_one()
    told["points"] = points.passed
    os.write(answer, json.dumps(told).encode())


def serve() -> None:
    """Fork a child for every line; say what it said before it ended."""
    for line in sys.stdin:
        inlet, outlet = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(inlet)
            with contextlib.suppress(BaseException):
                _work(json.loads(line), outlet)
            os._exit(0)
        os.close(outlet)
        with os.fdopen(inlet, "rb") as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        told = json.loads(said) if said else {}
        told["killed"] = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print(json.dumps(told), flush=True)


class Forks:
    """The process that forks, seen from a test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.children"],
            cwd=ROOT,
            env={**os.environ, "USER": "tester"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def child(self, deed: str, home: Path, at: int | None = None) -> dict[str, Any]:
        """A child does one deed, unless it is killed before its point; what it left behind."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"deed": deed, "home": str(home), "at": at}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


if __name__ == "__main__":
    serve()
