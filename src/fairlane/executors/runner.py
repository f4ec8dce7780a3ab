"""The runner: a small process that owns one agent, so that agents survive the daemon.

Standard library only, started without the package, with its orders on standard input (they hold
the environment, so they are never written down); until they come it waits. It writes the agent's
output to the run folder, masked and bounded, stops it when asked or when its time is up, leaves
nothing of it behind, and says in `exit.json` how it ended.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import re
import selectors
import signal
import stat
import subprocess
import sys
import time

TYPE_CHECKING = False  # `typing` itself would take longer to import than all the rest
if TYPE_CHECKING:
    from typing import Any, BinaryIO

CHUNK = 1 << 20
#: In a run folder: nothing is to be started here any more.
REVOKED = "revoked"
#: How every file of the run folder is opened: the agent could have put a link or a pipe there.
SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: What every process of a run has in its environment.
MARK = "FAIRLANE_RUN"
#: After the agent's end its output may still be held open by what it left behind.
DRAIN_SECONDS = 1.0
#: How long `exit.json` is tried when the disk is full.
WRITE_SECONDS = 60.0
#: The output that has come is dealt with in less; a longer time was spent asleep.
BUSY_SECONDS = 5.0
#: Shortest sleep towards a deadline, else a tenth of what is left: no sleep alone uses it up.
TICK_SECONDS = 0.1
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Log:
    """One output file: whole lines, masked, up to a size; final records are always kept."""

    def __init__(self, path: str, orders: dict[str, Any]) -> None:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | SAFE, 0o600)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "no regular file", path)
        self._file: BinaryIO = os.fdopen(file, "ab", buffering=0)
        self._left, self._line_max = orders["max_bytes"], orders["line_max"]
        self._mask = re.compile("|".join(orders["mask"]).encode()) if orders["mask"] else None
        self._final = orders["final"]
        self._parts: list[bytes] = []  # of a line whose end has not come
        self._held = 0
        self.dropped = 0
        self.finals = 0  # final records so far

    def feed(self, data: bytes) -> None:
        """More output."""
        whole, end, rest = data.rpartition(b"\n")
        if end:
            self._block(b"".join([*self._parts, whole, end]))
            self._parts, self._held = [], 0
        if self._left <= 0 and not self._parts and not rest.startswith(b"{"):
            self.dropped += len(rest)  # its end, if it comes, is no beginning of a record
            self._parts, self._held = ([b" "], 1) if rest else ([], 0)
        elif rest:
            self._parts.append(rest)
            self._held += len(rest)
        if self._held > self._line_max:
            self._block(b"".join(self._parts))
            self._parts, self._held = [b" "], 1

    def close(self) -> None:
        """No more output."""
        if self._held > 1:
            self._block(b"".join(self._parts) + b"\n")
        if self.dropped:
            self._write(b"[fairlane: %d bytes were dropped]\n" % self.dropped)
        self._file.close()

    def _block(self, lines: bytes) -> None:
        """Lines, each with its end."""
        finals = self._finals(lines) if self._final and b"{" in lines else []
        self.finals += len(finals)
        room = max(0, self._left)
        kept, beyond = lines[:room], lines[room:]
        if kept:
            self._left -= len(kept)
            self._write(self._masked(kept))
        self.dropped += len(beyond)
        for line in finals:
            if beyond and line not in kept:
                self._write(b"\n" + self._masked(line) + b"\n")

    def _masked(self, data: bytes) -> bytes:
        return self._mask.sub(b"***", data) if self._mask else data

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:  # no room: the agent goes on, its words are lost
            self.dropped += len(data)

    def _finals(self, lines: bytes) -> list[bytes]:
        words = [word.encode() for _, known in self._final for word in known]
        if not any(word in lines for word in words):
            return []
        found = []
        for line in lines.split(b"\n"):
            if len(line) > self._line_max or not line.startswith(b"{"):
                continue  # nobody reads a longer one
            if any(word in line for word in words):
                with contextlib.suppress(ValueError, AttributeError, RecursionError):
                    record = json.loads(line)
                    if any(record.get(key) in known for key, known in self._final):
                        found.append(line)
        return found


class Runner:
    """Owns one agent from its start to its end."""

    def __init__(self, folder: str, orders: dict[str, Any]) -> None:
        self.folder, self.orders = folder, orders
        self.started_at = time.time_ns() // 1000
        self.stopped = ""  # why it was stopped
        self._stop_early = ""  # why it is to be stopped as soon as it has started
        self._ladder: list[tuple[float, int]] = []  # (when, signal), what is still to be sent
        self._asleep = 0.0  # seconds in which this process was suspended, or stopped by a signal
        self._looked_at = self._begun = self._silent_since = time.monotonic()
        self._grace_until: float | None = None
        self._finals = 0
        self.agent: subprocess.Popen[bytes] | None = None

    def run(self) -> dict[str, Any]:
        """Start it, watch it, and tell how it ended."""
        names = [os.path.join(self.folder, f"{name}.log") for name in ("stdout", "stderr")]
        try:
            logs = [Log(name, self.orders) for name in names]
            self.agent = self._start()
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
        sweep(self.agent.pid, self.orders["marker"])
        code = self.agent.returncode
        return {
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "final": logs[0].finals > 0,
            "dropped": sum(log.dropped for log in logs),
        }

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
        words = self.orders["stdin"]
        given: int | BinaryIO = subprocess.DEVNULL
        if words is not None:
            given = os.fdopen(os.memfd_create("prompt"), "w+b")
            given.write(words.encode())
            given.seek(0)
        ignore_nothing()
        return subprocess.Popen(
            self.orders["argv"], cwd=self.orders["cwd"], env=self.orders["env"], stdin=given,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def _tell_start(self) -> None:
        assert self.agent is not None
        started = process_started(self.agent.pid)
        me = {"pid": os.getpid(), "pid_started": process_started(os.getpid())}
        agent = {"agent_pid": self.agent.pid, "agent_started": started}
        write(self.folder, "runner.json", me | agent | {"started_at": self.started_at}, now=True)

    def _give_up(self, agent: subprocess.Popen[bytes], logs: list[Log]) -> None:
        """It cannot be watched over: it ends, and leaves room to say so."""
        for each in (agent.stdout, agent.stderr, *logs):
            assert each is not None
            each.close()
        sweep(agent.pid, self.orders["marker"])
        agent.wait()

    def _watch(self, agent: subprocess.Popen[bytes], logs: list[Log]) -> None:
        selector = selectors.DefaultSelector()
        for pipe, log in zip((agent.stdout, agent.stderr), logs, strict=True):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, log)
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        selector.register(woken, selectors.EVENT_READ)
        ended = os.pidfd_open(agent.pid)
        selector.register(ended, selectors.EVENT_READ)
        end: float | None = None
        while len(selector.get_map()) > 1:
            self._passed(BUSY_SECONDS)
            asked = self._sleep(end)
            ready = selector.select(asked)
            self._passed(asked)
            for key, _ in ready:
                if key.fd == woken:
                    os.read(woken, 512)
                elif key.fd == ended:
                    selector.unregister(ended)
                    agent.wait()
                    end = time.monotonic() + DRAIN_SECONDS
                elif not self._read(key, logs[0]):
                    selector.unregister(key.fileobj)
            if end is None:
                self._mind_the_time()
            elif time.monotonic() >= end:
                break

    def _read(self, key: selectors.SelectorKey, first: Log) -> bool:
        try:
            data = os.read(key.fd, CHUNK)
        except BlockingIOError:
            return True
        self._silent_since = self._awake()
        key.data.feed(data)
        if self.orders.get("echo"):
            with contextlib.suppress(OSError):
                os.write(1, data)
        if first.finals > self._finals:
            self._finals = first.finals
            self._grace_until = self._awake() + self.orders["grace"]
        return bool(data)

    def _mind_the_time(self) -> None:
        """Whatever is due: a stop for its time, its silence, its grace; the next rung."""
        now = self._awake()
        for name, due in self._deadlines():
            if now >= due:
                self.stop(name)
        while self._ladder and now >= self._ladder[0][0]:
            self._send(self._ladder.pop(0)[1])
            if not self._ladder:
                self._ladder = [(now + 3600, signal.SIGKILL)]

    def _deadlines(self) -> list[tuple[str, float]]:
        found = []
        if self.orders["timeout"] is not None:
            found.append(("timeout", self._begun + self.orders["timeout"]))
        if self.orders["silence"] is not None:
            found.append(("silence", self._silent_since + self.orders["silence"]))
        if self._grace_until is not None:
            found.append(("grace", self._grace_until))
        return [] if self._ladder else found

    def _sleep(self, end: float | None) -> float:
        if end is not None:
            return max(0.0, end - time.monotonic())
        dues = [due for _, due in self._deadlines()] + [due for due, _ in self._ladder[:1]]
        left = min(dues, default=math.inf) - self._awake()
        return max(0.0, min(left, max(TICK_SECONDS, left / 10), 60.0))

    def _awake(self) -> float:
        """A clock that stands still while this process does; nobody sets it."""
        return time.monotonic() - self._asleep

    def _passed(self, most: float) -> None:
        """Since the last call at most so much time was meant to pass; the rest was no work time."""
        now = time.monotonic()
        self._asleep += max(0.0, now - self._looked_at - most)
        self._looked_at = now

    def _send(self, number: int) -> None:
        assert self.agent is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.agent.pid, number)


def ignore_nothing() -> None:
    """An agent inherits what is ignored here, but no handler; `nohup` must not keep it from a stop.

    `Popen` itself restores the two that Python ignores.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


def sweep(group: int, marker: str) -> None:
    """Nothing stays behind: the group, and whatever left it but carries the run's mark."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for _ in range(3):
        found = marked(marker)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def marked(marker: str) -> list[int]:
    """Processes that carry this run's mark in their environment, but for this one."""
    found = []
    mark = os.fsencode(f"{MARK}={marker}")
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as held:
                if mark in held.read().split(b"\0"):
                    found.append(int(name))
    return found


def process_started(pid: int) -> str | None:
    """What tells this process from a later one of the same number."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as held:
            return held.read().rpartition(")")[2].split()[19]
    except OSError:
        return None


def failure(error: OSError, what: str) -> dict[str, Any]:
    """Why nothing runs; the number tells whether something was missing here."""
    text = f"{os.fsdecode(error.filename or what)}: {error.strerror}"
    return {"launch_error": text, "errno": error.errno}


def write(folder: str, name: str, document: dict[str, Any], now: bool = False) -> None:
    """A whole file or none, kept on disk; where there is no room, tried for a while, or once."""
    path = os.path.join(folder, name)
    give_up = time.monotonic() + (0.0 if now else WRITE_SECONDS)
    while True:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + ".new")
            new = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE, 0o600)
            with os.fdopen(new, "w", encoding="utf-8") as held:
                json.dump(document, held)
                held.flush()
                os.fsync(held.fileno())
            os.replace(path + ".new", path)
            return
        except OSError as error:
            if error.errno not in NO_ROOM or time.monotonic() >= give_up:
                raise
            if not make_room(folder):
                time.sleep(0.5)


def make_room(folder: str) -> bool:
    """How it ended matters more than what it said: half of the longer log goes."""
    sizes = {}
    for name in ("stdout.log", "stderr.log"):
        with contextlib.suppress(OSError):
            file = os.open(os.path.join(folder, name), os.O_WRONLY | SAFE)
            sizes[file] = os.fstat(file).st_size
    longest = max(sizes, key=lambda file: sizes[file], default=-1)
    made = bool(sizes.get(longest))
    if made:
        os.truncate(longest, sizes[longest] // 2)
    for file in sizes:
        os.close(file)
    return made


def call_for(argv: list[str], unless: str) -> None:
    """Without anybody who watches, a command takes in how it ended."""
    with contextlib.suppress(OSError), open(unless, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # refused: somebody watches
        null = subprocess.DEVNULL
        subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, start_new_session=True)


def _orders() -> dict[str, Any]:
    """From standard input, or from a named pipe that is gone after it."""
    if len(sys.argv) < 2:
        return dict(json.load(sys.stdin))
    with open(sys.argv[1], encoding="utf-8") as pipe:
        os.unlink(sys.argv[1])
        return dict(json.load(pipe))


def main() -> int:
    """One agent, from its orders to its end."""
    try:
        orders = _orders()
        os.chdir(orders["folder"])  # whatever becomes of the path, this is the run folder
    except (OSError, ValueError):
        return 3  # whoever should give orders is gone: nothing was started
    folder = "."
    me = {"pid": os.getpid(), "pid_started": process_started(os.getpid())}
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        write(folder, "runner.json", me, now=True)
    except OSError as error:
        write(folder, "exit.json", failure(error, orders["folder"]) | {"environment": True})
        return 0
    runner = Runner(folder, orders)
    if os.path.lexists(os.path.join(folder, REVOKED)):
        return 3  # whoever gave the orders died, and who came after did not see this runner
    signal.signal(signal.SIGTERM, lambda number, frame: runner.stop("stop"))
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: None)
    ended = runner.run()
    times = {"started_at": runner.started_at, "ended_at": time.time_ns() // 1000}
    write(folder, "exit.json", ended | times | {"stopped": runner.stopped})
    if orders.get("after"):
        call_for(**orders["after"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
