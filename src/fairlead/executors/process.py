"""Local processes, each under its own runner."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairlead.executors import runner
from fairlead.executors.base import Exit, Handle, Orders

#: The command line of a runner; its folder follows.
RUN = (sys.executable, "-I", "-S", str(Path(runner.__file__)))


class ProcessExecutor:
    """The default: agents are processes of this machine."""

    def launch(self, orders: Orders) -> Handle:
        """Start a runner; it gets its orders through a pipe."""
        process = subprocess.Popen(
            [*RUN, str(orders.folder)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/", start_new_session=True, close_fds=True,
        )  # fmt: skip
        assert process.stdin is not None
        started = runner.process_started(process.pid) or ""
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(spoken(orders))
        process.returncode = 0  # it is reaped by `reap`, not by this object
        return Handle(process.pid, started)

    def adopt(self, folder: Path) -> Handle | None:
        """The runner of this folder, if it lives."""
        told = _read(folder / "runner.json")
        if told is None or is_dead(told["pid"], told["pid_started"]):
            return None
        return Handle(told["pid"], told["pid_started"])

    def stop(self, handle: Handle) -> None:
        """Ask the runner; one that is gone has nothing left to stop."""
        if not is_dead(handle.pid, handle.pid_started):
            with contextlib.suppress(ProcessLookupError):
                os.kill(handle.pid, signal.SIGTERM)


def spoken(orders: Orders, **more: object) -> bytes:
    """Orders as a runner takes them."""
    told = asdict(orders) | {
        "env": dict(orders.env) | {"FAIRLEAD_RUN": str(orders.folder)},
        "cwd": str(orders.cwd),
        "marker": str(orders.folder),
    }
    del told["folder"]
    return json.dumps(told | more).encode()


def exit_of(folder: Path) -> Exit | None:
    """How the attempt of this folder ended; None: its runner did not say."""
    told = _read(folder / "exit.json")
    return None if told is None else Exit.of(told)


def clean_up(folder: Path) -> None:
    """A runner died before its agent: nothing of the agent stays behind."""
    told = _read(folder / "runner.json") or {}
    group = told.get("agent_pid")
    if group is not None and not is_dead(group, told.get("agent_started")):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for pid in runner.marked(str(folder)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def reap() -> None:
    """Take leave of runners that were children of this process: no zombie stays."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def is_dead(pid: int, started: str | None) -> bool:
    """Whether this very process is gone (a zombie is)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    fields = text.rpartition(")")[2].split()
    return fields[0] in "ZX" or fields[19] != started


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
