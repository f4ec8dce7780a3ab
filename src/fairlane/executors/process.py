"""Local processes, each under its own runner."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairlane.executors import runner
from fairlane.executors.base import Exit, Handle, Orders
from fairlane.executors.runfiles import Damaged, append, damage_of, read_record

_CALL = "import runner; sys.exit(runner.main())"
_FOLDER = str(Path(runner.__file__).parents[1])
_CODE = f"import sys; sys.path.append({_FOLDER!r}); {_CALL}"
#: The command line of a runner: imported, not run as a script, so that it is compiled once.
RUN = (sys.executable, "-I", "-S", "-c", _CODE)


#: Numbers of processes are smaller on every kernel.
_PID_MAX = 1 << 22
#: Runners that this process started, until they are reaped.
_children: set[int] = set()


class ProcessExecutor:
    """The default: agents are processes of this machine."""

    def __init__(self, warm: bool = False) -> None:
        self._warm = warm  # whether the next runner is started before it is needed
        self._spare: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def launch(self, orders: Orders) -> Handle:
        """Give a runner its orders, through a pipe."""
        with self._turn:
            process, self._spare = self._spare, None
        if process is None or process.poll() is not None:
            process = _new_runner()
        started = runner.process_started(process.pid) or ""
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(spoken(orders))
        process.returncode = 0  # it is reaped by `reap`, not by this object
        _children.add(process.pid)
        self.warm_up()
        return Handle(process.pid, started)

    def warm_up(self) -> None:
        """Have a runner wait for the next orders; it ends when nobody can give it any."""
        with self._turn, contextlib.suppress(OSError):  # the next launch says what is missing
            if self._warm and self._spare is None:
                self._spare = _new_runner()

    def close(self) -> None:
        """The runner that waits is sent away."""
        with self._turn:
            if self._spare is not None and self._spare.stdin is not None:
                self._spare.stdin.close()
                self._spare.wait()
            self._spare, self._warm = None, False

    def adopt(self, folder: Path) -> Handle | None:
        """The runner of this folder, if it lives."""
        return owner_of(folder)

    def stop(self, handle: Handle) -> None:
        """Ask the runner; one that is gone has nothing left to stop."""
        if not is_dead(handle.pid, handle.pid_started):
            with contextlib.suppress(ProcessLookupError):
                os.kill(handle.pid, signal.SIGTERM)


def _new_runner() -> subprocess.Popen[bytes]:
    # The mark of an attempt that starts another one would have that swept away with itself.
    env = {name: value for name, value in os.environ.items() if name != runner.MARK}
    return subprocess.Popen(
        RUN, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        cwd="/", start_new_session=True, close_fds=True, env=env,
    )  # fmt: skip


def spoken(orders: Orders, **more: object) -> bytes:
    """Orders as a runner takes them."""
    told = asdict(orders) | {
        "env": dict(orders.env) | {runner.MARK: str(orders.folder)},
        "folder": str(orders.folder),
        "cwd": str(orders.cwd),
        "marker": str(orders.folder),
    }
    if orders.after is not None:
        told["after"] = {"argv": orders.after.argv, "unless": str(orders.after.unless)}
    return json.dumps(told | more).encode()


def owner_of(folder: Path) -> Handle | None:
    """The runner that has shown itself in this folder, if it lives."""
    try:
        told = _runner_of(folder)
    except OSError:  # `exit_of` says what is wrong
        return None
    if "pid" not in told or is_dead(told["pid"], told.get("pid_started")):
        return None
    if not _is_runner(told["pid"]):  # an agent has written this; it would be stopped some day
        return None
    return Handle(told["pid"], told["pid_started"])


def exit_of(folder: Path) -> Exit | None:
    """How the attempt of this folder ended; None: its runner did not say."""
    try:
        told = read_record(folder / "exit.json")
        if told is None:
            _runner_of(folder)  # one that cannot be read is never adopted, so nobody waits for it
        return None if told is None else Exit.of(told)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Exit(damage=damage_of(error))


def revoke(folder: Path) -> None:
    """A runner that has not shown itself yet starts nothing; one that has can be adopted."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        append(folder / runner.REVOKED, "")


def clean_up(folder: Path) -> None:
    """A runner died before its agent: nothing of the agent stays behind."""
    told: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        told = _runner_of(folder)
    group = told.get("agent_pid")
    dead = group is None or is_dead(group, told.get("agent_started"))
    if group is not None and not dead and _is_agent(group, folder):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for pid in runner.marked(str(folder)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _is_runner(pid: int) -> bool:
    """Whether this process is a runner, by its command line."""
    return os.fsencode(_CALL) in _of_process(pid, "cmdline")


def _is_agent(pid: int, folder: Path) -> bool:
    """Whether this process has the mark of the run; one whose environment is empty may have had."""
    variables = _of_process(pid, "environ").split(b"\0")
    return variables == [b""] or os.fsencode(f"{runner.MARK}={folder}") in variables


def _of_process(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


def reap() -> None:
    """Take leave of runners that were children of this process, and of nobody else's children."""
    for pid in tuple(_children):
        with contextlib.suppress(ChildProcessError):
            if not os.waitpid(pid, os.WNOHANG)[0]:
                continue
        _children.discard(pid)


def is_dead(pid: int, started: str | None) -> bool:
    """Whether this very process is gone (a zombie is)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    fields = text.rpartition(")")[2].split()
    return fields[0] in "ZX" or fields[19] != started


def _runner_of(folder: Path) -> dict[str, Any]:
    """What the runner says of itself and its agent; empty: nothing yet."""
    told = read_record(folder / "runner.json") or {}
    for name in ("pid", "agent_pid"):
        value = told.get(name, 2)
        if type(value) is not int or not 1 < value <= _PID_MAX:  # 1, 0 and -1 name everybody
            raise Damaged(f"runner.json: {name} is {value!r:.60}")
    for name in ("pid_started", "agent_started"):
        if not isinstance(told.get(name), str | None):
            raise Damaged(f"runner.json: {name} is {told[name]!r:.60}")
    return told
