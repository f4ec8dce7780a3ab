"""The runner: a small process that owns one agent, so that agents survive the daemon.

Standard library only, started without the package, with its orders on standard input (they hold
the environment, so they are never written down); until they come it waits. It writes the agent's
output to the run folder, masked and bounded, stops it when asked or when its time is up, leaves
nothing of it behind, and says in `exit.json` how it ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from functools import partial

from . import forks
from .calls import Listener
from .cgroup import leave
from .confine import Confinement, Unconfined
from .files import (
    ENDED,
    MARK,
    call_for,
    end_of_file,
    exit_status,
    failure,
    ignore_nothing,
    marked,
    note_end,
    own_process,
    process_started,
    read_orders,
    with_end,
    write,
)
from .log import Log
from .tree import adopt_orphans, reap_orphans, sweep

TYPE_CHECKING = False  # `typing` itself would take longer to import than all the rest
if TYPE_CHECKING:
    from typing import BinaryIO

    from .files import Orders

__all__ = ["ENDED", "MARK", "REVOKED", "Runner", "main", "marked", "process_started"]

CHUNK = 1 << 20
#: In a run folder: nothing is to be started here any more.
REVOKED = "revoked"
#: After the agent's end its output may still be held open by what it left behind.
DRAIN_SECONDS = 1.0
#: The output that has come is dealt with in less; a longer time was spent asleep.
BUSY_SECONDS = 5.0
#: Shortest sleep towards a deadline, else a tenth of what is left: no sleep alone uses it up.
TICK_SECONDS = 0.1
#: An agent that has printed nothing for so long has time for what its output will need.
SETTLED_SECONDS = 0.05
#: How often it is looked at what an agent with limits uses.
LOOK_SECONDS = 0.25


class Runner:
    """Owns one agent from its start to its end."""

    def __init__(self, folder: str, orders: Orders) -> None:
        self.folder, self.orders = folder, orders
        self.started_at = time.time_ns() // 1000
        self.stopped = ""  # why it was stopped
        self._stop_early = ""  # why it is to be stopped as soon as it has started
        self._ladder: list[tuple[float, int]] = []  # (when, signal), what is still to be sent
        self._asleep = 0.0  # seconds in which this process was suspended, or stopped by a signal
        self._looked_at = self._begun = self._silent_since = time.monotonic()
        self._grace_until: float | None = None
        self._drained_at: float | None = (
            None  # the agent has ended; what it printed is read so long
        )
        self._is_settled = False  # whether what its output needs is prepared
        self._held = Confinement(orders["sandbox"])
        self.calls: Listener | None = None
        self.agent: subprocess.Popen[bytes] | None = None

    def run(self) -> dict[str, object]:
        """Start the agent, supervise it, and return how it ended."""
        names = [os.path.join(self.folder, f"{name}.log") for name in ("stdout", "stderr")]
        try:
            logs = [Log(name, self.orders) for name in names]
            self.agent = self._start()
        except (Unconfined, subprocess.SubprocessError) as error:
            return {"launch_error": f"the sandbox cannot be made: {error}", "environment": True}
        except OSError as error:
            return failure(error, self.orders["argv"][0])
        try:
            if self._stop_early:
                self.stop(self._stop_early)
            self._tell_start()
            self._watch(self.agent, logs)
        except OSError as error:
            self._give_up(self.agent, logs)
            return failure(error, "its runner") | {"environment": True}
        for log in logs:
            log.close()
        self._held.kill()
        sweep(self.agent.pid, self.orders["marker"])
        self._held.close()
        code, errors = self.agent.returncode, end_of_file(names[not self.orders["joined"]])
        return (
            exit_status(code)
            | self._held.ended(code, self.stopped, errors)
            | {
                "final": logs[0].finals > 0,
                "dropped": sum(log.dropped for log in logs),
                "record": logs[0].record.decode("utf-8", "replace"),
                "cut": logs[0].cut,
            }
        )

    def stop(self, why: str) -> None:
        """Interrupt, wait, terminate, wait, kill: always the whole group."""
        if self.agent is None:
            self._stop_early = why
        if self._ladder or self.agent is None:
            return
        self.stopped = why
        now, (first, second) = self._awake(), self.orders["stop"]
        self._send(signal.SIGINT)
        self._ladder = [(now + first, signal.SIGTERM), (now + first + second, signal.SIGKILL)]

    def _start(self) -> subprocess.Popen[bytes]:
        text = self.orders["stdin"]
        stdin: int | BinaryIO = subprocess.DEVNULL
        if text is not None:
            stdin = os.fdopen(os.memfd_create("prompt"), "w+b")
            stdin.write(text.encode())
            stdin.seek(0)
        errors = subprocess.STDOUT if self.orders["joined"] else subprocess.PIPE
        argv, first, descriptors = self._held.prepare(self.orders["argv"])
        agent = subprocess.Popen(
            argv, cwd=self.orders["cwd"], env=self.orders["env"], stdin=stdin,
            stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            preexec_fn=first, pass_fds=descriptors,  # noqa: PLW1509
        )  # fmt: skip
        self._held.started()
        return agent

    def _tell_start(self) -> None:
        assert self.agent is not None
        pid = self.agent.pid
        agent = {"agent_pid": pid, "agent_started": process_started(pid)}
        document = own_process() | agent | {"started_at": self.started_at}
        write(self.folder, "runner.json", document, now=True)

    def _give_up(self, agent: subprocess.Popen[bytes], logs: list[Log]) -> None:
        """The agent cannot be supervised: kill it, and make room for the exit record."""
        for file in (agent.stdout, agent.stderr, *logs):
            if file is not None:
                file.close()
        agent.kill()
        agent.wait()
        self._held.kill()
        sweep(agent.pid, self.orders["marker"])

    def _watch(self, agent: subprocess.Popen[bytes], logs: list[Log]) -> None:
        selector, unended = selectors.DefaultSelector(), set[int]()
        for pipe, log in zip((agent.stdout, agent.stderr), logs, strict=True):
            if pipe is None:  # its errors stand among its output
                continue
            os.set_blocking(pipe.fileno(), False)
            read = partial(self._read, log, logs[0])
            unended.add(selector.register(pipe, selectors.EVENT_READ, read).fd)
        ended = os.pidfd_open(agent.pid)
        unended.add(selector.register(ended, selectors.EVENT_READ, self._end).fd)
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        selector.register(woken, selectors.EVENT_READ, lambda file: bool(os.read(file, 512)))
        if self.calls is not None:
            selector.register(self.calls, selectors.EVENT_READ, self._serve_calls)
        while unended:
            self._passed(BUSY_SECONDS)
            asked = self._sleep()
            ready = selector.select(asked)
            self._passed(asked)
            reap_orphans(agent.pid)
            if not ready:
                self._settle(logs)
            for key, _ in ready:
                if not key.data(key.fd):
                    selector.unregister(key.fileobj)
                    unended.discard(key.fd)
            if self._drained_at is None:
                self._mind_the_time()
            elif time.monotonic() >= self._drained_at:
                break

    def _settle(self, logs: list[Log]) -> None:
        """Nothing is ready: prepare what its output will need."""
        self._is_settled = True
        for log in logs:
            log.join_masks()

    # What becomes of a descriptor that is ready; whether it is looked at any longer.

    def _end(self, _: int) -> bool:
        assert self.agent is not None
        note_end(self.folder, self.agent.wait(), self.stopped, self.orders["seal"])
        self._drained_at = time.monotonic() + DRAIN_SECONDS
        return False

    def _serve_calls(self, _: int) -> bool:
        assert self.calls is not None
        with contextlib.suppress(OSError):  # the agent can work without it
            self.calls.serve()
        return False

    def _read(self, log: Log, first: Log, pipe: int) -> bool:
        try:
            data = os.read(pipe, CHUNK)
        except BlockingIOError:
            return True
        self._silent_since = self._awake()
        log.feed(data)
        if self.orders.get("echo"):
            with contextlib.suppress(OSError):
                os.write(1, data)
        if first.finals and self._grace_until is None:  # the first one begins it, once
            self._grace_until = self._awake() + self.orders["grace"]
        return bool(data)

    def _mind_the_time(self) -> None:
        """Stop for timeout, silence or grace when due; send the next signal of a stop."""
        now = self._awake()
        server = 0 if self.calls is None else self.calls.server
        if self._held.is_watched and not self.stopped and self._held.over(server):
            self.stopped = "limit"
            self._ladder = [(now, signal.SIGKILL)]
        for name, due in self._deadlines():
            if now >= due:
                self.stop(name)
        while self._ladder and now >= self._ladder[0][0]:
            self._send(self._ladder.pop(0)[1])
            if not self._ladder:
                self._ladder = [(now + 3600, signal.SIGKILL)]

    def _deadlines(self) -> list[tuple[str, float]]:
        dues = []
        if self.orders["timeout"] is not None:
            dues.append(("timeout", self._begun + self.orders["timeout"]))
        if self.orders["silence"] is not None:
            dues.append(("silence", self._silent_since + self.orders["silence"]))
        if self._grace_until is not None:
            dues.append(("grace", self._grace_until))
        return [] if self._ladder else dues

    def _sleep(self) -> float:
        if self._drained_at is not None:
            return max(0.0, self._drained_at - time.monotonic())
        dues = [due for _, due in self._deadlines()] + [due for due, _ in self._ladder[:1]]
        left = min(dues, default=float("inf")) - self._awake()
        longest = LOOK_SECONDS if self._held.is_watched else 60.0
        longest = longest if self._is_settled else SETTLED_SECONDS
        return max(0.0, min(left, max(TICK_SECONDS, left / 10), longest))

    def _awake(self) -> float:
        """A monotonic clock that does not count the time in which this process was suspended."""
        return time.monotonic() - self._asleep

    def _passed(self, most: float) -> None:
        """Count what passed since the last call beyond `most` seconds as suspended time."""
        now = time.monotonic()
        self._asleep += max(0.0, now - self._looked_at - most)
        self._looked_at = now

    def _send(self, number: int) -> None:
        assert self.agent is not None
        self._held.send(number, self.agent.pid)


def take_signals(runner: Runner) -> None:
    """From now on a request to stop is taken, also one that came before and was blocked."""
    signal.signal(signal.SIGTERM, lambda number, frame: runner.stop("stop"))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def main() -> int:
    """One agent, from its orders to its end; what needs no orders is done before they come."""
    leave()
    ignore_nothing()
    if not forks.is_warm():
        return _own_one()
    forks.serve()
    os._exit(_own_one())  # all is written; to take Python down would copy what is shared


def _own_one() -> int:
    adopt_orphans()
    try:
        orders = read_orders()
        os.chdir(orders["folder"])  # stays the run folder when the path changes
    except (OSError, ValueError):
        return 3  # the launcher died before it gave orders
    folder = "."
    runner = Runner(folder, orders)
    take_signals(runner)
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        write(folder, "runner.json", own_process(), now=True)
    except OSError as error:
        write(folder, "exit.json", failure(error, orders["folder"]) | {"environment": True})
        return 0
    if os.path.lexists(os.path.join(folder, REVOKED)):
        return 3  # the launcher died, and its successor did not see this runner
    if orders["calls"]:
        with contextlib.suppress(OSError):  # the agent can work without it
            runner.calls = Listener(orders["calls"])
    ended = runner.run()
    if runner.calls is not None:
        runner.calls.close()
    times = {"started_at": runner.started_at, "ended_at": time.time_ns() // 1000}
    write(folder, "exit.json", times | with_end(ended, runner.stopped, orders["seal"]))
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, ENDED))
    if orders["after"]:
        call_for(**orders["after"])
    return 0
