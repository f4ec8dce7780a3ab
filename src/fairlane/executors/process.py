"""Local processes, each under its own runner."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
from dataclasses import asdict, fields, replace
from io import FileIO
from pathlib import Path
from types import NoneType

from fairlane.careful_files import is_own
from fairlane.executors import base, runner, starting
from fairlane.executors.base import STREAMS, Ended, Exit, Gone, Handle, Orders, Running, State
from fairlane.executors.runfiles import (
    Damaged,
    append,
    damage_of,
    make_run,
    read_part,
    read_record,
    size,
)
from fairlane.executors.runner import cgroup
from fairlane.executors.starting import CALL, Process, WarmProcess

#: A runner that has written how its agent ended needs less to end itself.
_END_SECONDS = 0.3
#: Numbers of processes are smaller on every kernel.
_PID_MAX = 1 << 22
#: The types of the fields of `exit.json`.
_EXIT_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("exit_code", "signal"), (int, NoneType)),
    **dict.fromkeys(("launch_error", "stopped", "record", "limit", "seal"), (str,)),
    **dict.fromkeys(("errno", "dropped", "started_at", "ended_at"), (int,)),
    **dict.fromkeys(("final", "environment", "cut"), (bool,)),
}


def is_alive(process: Process) -> bool:
    """Whether this very process runs (a zombie does not)."""
    pid, started = process
    return runner.process_started(pid) == started


def owner_of(run: Path) -> Process | None:
    """The runner that has shown itself in this folder, if it lives."""
    try:
        owner, _ = _processes(run)
    except OSError:  # `exit_of` says what is wrong
        return None
    if owner is None or not is_alive(owner):
        return None
    # An agent could have named a stranger here, who would be stopped some day.
    return owner if os.fsencode(CALL) in _of_process(owner[0], "cmdline") else None


def exit_of(run: Path, *, dead: bool = False) -> Exit | None:
    """How the attempt of this folder ended; None: its runner has not said so.

    `dead`: the runner does not run, so what is wrong with its other record counts too, and what it
    noted before it was killed.
    """
    try:
        record = read_record(run / "exit.json")
        if record is None and dead:
            _processes(run)
            noted = read_record(run / runner.ENDED)
            return None if noted is None else replace(_exit(noted), noted=True)
        return None if record is None else _exit(record)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Exit(damage=damage_of(error))


def kill_left_over(run: Path) -> None:
    """A runner died before its agent: kill the agent's cgroup, or what carries the run's mark."""
    cgroup.end_of(str(run))
    agent: Process | None = None
    with contextlib.suppress(OSError):
        _, agent = _processes(run)
    if agent is not None and is_alive(agent) and _has_mark(agent[0], run):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(agent[0], signal.SIGKILL)
    for pid in runner.marked(str(run)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    socket = base.socket_of(run)
    if is_own(socket.parent):
        with contextlib.suppress(OSError):
            socket.unlink(missing_ok=True)
            socket.parent.rmdir()


def _exit(record: dict[str, object]) -> Exit:
    """From what the runner wrote; what it did not say is empty."""
    for name, types in _EXIT_TYPES.items():
        if name in record and type(record[name]) not in types:
            raise Damaged(f"exit.json: {name} is {record[name]!r:.60}")
    return Exit(**{name: record[name] for name in _EXIT_TYPES if name in record})  # type: ignore[arg-type]


def _processes(run: Path) -> tuple[Process | None, Process | None]:
    """The runner and its agent, as far as `runner.json` names them."""
    record = read_record(run / "runner.json") or {}
    return _process(record, "pid", "pid_started"), _process(record, "agent_pid", "agent_started")


def _process(record: dict[str, object], number: str, start: str) -> Process | None:
    pid, started = record.get(number), record.get(start)
    if pid is not None and (type(pid) is not int or not 1 < pid <= _PID_MAX):
        raise Damaged(f"runner.json: {number} is {pid!r:.60}")  # 1, 0 and -1 name everybody
    if not isinstance(started, str | None):
        raise Damaged(f"runner.json: {start} is {started!r:.60}")
    return None if pid is None or started is None else (pid, started)


def _has_mark(pid: int, run: Path) -> bool:
    """Whether this process has the mark of the run; one whose environment is empty may have had."""
    variables = _of_process(pid, "environ").split(b"\0")
    return variables == [b""] or os.fsencode(f"{runner.MARK}={run}") in variables


def _of_process(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


class ProcessExecutor:
    """The default: agents are processes of this machine."""

    def __init__(self) -> None:
        self._warm = WarmProcess()

    def launch(self, orders: Orders) -> Handle:
        """Give a runner its orders, through a pipe."""
        starting.reap()
        waiting = self._warm.fork() or starting.fresh()
        with contextlib.suppress(BrokenPipeError), waiting.orders as pipe:
            pipe.write(orders_text(orders))
        return _handle(orders.folder, waiting.process)

    def poll(self, handle: Handle) -> State:
        """The result, if the runner has written it; else whether the runner lives."""
        ended = exit_of(handle.run)
        if self._process(handle) is not None and (ended is None or not self._ends(handle, ended)):
            return Running()
        starting.reap()
        ended = ended or exit_of(handle.run, dead=True)  # it may have ended meanwhile
        return Gone() if ended is None else Ended(ended)

    def _ends(self, handle: Handle, ended: Exit) -> bool:
        """Whether the runner is at its end; an agent could have written this in its place."""
        watch = None if ended.damage else self.watch(handle)
        if watch is None:
            return True
        with watch:
            return bool(select.select([watch], [], [], _END_SECONDS)[0])

    def watch(self, handle: Handle) -> FileIO | None:
        """A descriptor of the runner."""
        process = self._process(handle)
        if process is None:
            return None
        try:
            watch = os.fdopen(os.pidfd_open(process[0]), "rb", buffering=0)
        except ProcessLookupError:
            return None
        if is_alive(process):
            return watch
        watch.close()  # it may be of another process with the same number
        return None

    def stop(self, handle: Handle) -> None:
        """Ask the runner, which stops its agent step by step and leaves nothing behind."""
        process = self.watch(handle)
        if process is not None:
            with process, contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process.fileno(), signal.SIGTERM)
                signal.pidfd_send_signal(process.fileno(), signal.SIGCONT)  # its agent may stop it

    def adopt(self, run: Path) -> Handle | None:
        """The runner of this folder, if it lives."""
        owner = owner_of(run)
        return None if owner is None else _handle(run, owner)

    def revoke(self, run: Path) -> None:
        """Leave a file that a runner looks for before it starts its agent."""
        with contextlib.suppress(OSError):
            make_run(run)
            append(run / runner.REVOKED, "")

    def clean_up(self, run: Path) -> None:
        """Kill what a dead runner has left behind."""
        kill_left_over(run)

    def output(self, run: Path, stream: str, offset: int, limit: int) -> bytes:
        """A part of a log in the run folder."""
        return read_part(_log(run, stream), offset, limit)

    def output_size(self, run: Path, stream: str) -> int:
        """The size of a log in the run folder."""
        return size(_log(run, stream))

    def warm_up(self) -> None:
        """Have a warm process for the next launches; it ends by itself when this process does."""
        with contextlib.suppress(OSError):  # the next launch says what is missing
            self._warm.start()

    def close(self) -> None:
        """Send the warm process away."""
        self._warm.close()

    def _process(self, handle: Handle) -> Process | None:
        """The runner, if it lives; where the handle does not name it, its run folder does."""
        if not handle.text:
            return owner_of(handle.run)
        number, _, started = handle.text.partition(" ")
        process = (int(number), started) if number.isdecimal() else None
        return process if process is not None and is_alive(process) else None


def orders_text(orders: Orders, **more: object) -> bytes:
    """Orders as a runner takes them."""
    document = {field.name: getattr(orders, field.name) for field in fields(orders)} | {
        "env": dict(orders.env) | {runner.MARK: str(orders.folder)},
        "folder": str(orders.folder),
        "cwd": str(orders.cwd),
        "marker": str(orders.folder),
    }
    if orders.sandbox is not None:
        document["sandbox"] = asdict(orders.sandbox)
    if orders.after is not None:
        document["after"] = {"argv": orders.after.argv, "unless": str(orders.after.unless)}
    if orders.calls is not None:
        document["calls"] = {"argv": orders.calls.argv, "socket": str(orders.calls.socket)}
    return json.dumps(document | more).encode()


def _handle(run: Path, process: Process) -> Handle:
    return Handle(run, f"{process[0]} {process[1]}")


def _log(run: Path, stream: str) -> Path:
    assert stream in STREAMS, stream
    return run / f"{stream}.log"
