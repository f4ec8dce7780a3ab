"""Executor: the port between a lease and whatever runs its agent."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from fairlane.model.amounts import LINE_MAX
from fairlane.model.record import dataclass, field

#: What an attempt prints.
STREAMS = ("stdout", "stderr")
#: The longest folder for sockets: the kernel takes paths of 107 bytes.
_FOLDER_MAX = 60


@dataclass(frozen=True, slots=True)
class After:
    """A command that runs when an attempt has ended, unless a daemon watches it."""

    argv: tuple[str, ...]
    unless: Path  # a daemon holds a lock on this file


@dataclass(frozen=True, slots=True)
class Calls:
    """The attempt's socket: where it is, and the command that answers a call."""

    socket: Path
    argv: tuple[str, ...]


def socket_of(run: Path) -> Path:
    """The socket of an attempt, at a path of its own that is short enough for a socket."""
    named = hashlib.sha256(os.fsencode(run)).hexdigest()[:16]
    folders = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")  # noqa: S108
    within = next(
        each for each in folders if each and len(each) <= _FOLDER_MAX and Path(each).is_dir()
    )
    return Path(within, f"fairlane-{os.getuid()}-{named}", "socket")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What holds an agent, and what it may use; None: without limit."""

    kind: str  # none: limits alone; bwrap, landlock
    words: tuple[str, ...] = ()  # the command line of bubblewrap
    read: tuple[str, ...] = ()  # what it may read, for Landlock
    write: tuple[str, ...] = ()  # what it may change, for Landlock
    temporary: str = ""  # a folder that goes away with the attempt
    memory: int | None = None  # bytes, of all its processes
    processes: int | None = None  # at once
    files: int | None = None  # open, of one process
    cpu: int | None = None  # seconds, of one process


@dataclass(frozen=True, slots=True)
class Orders:
    """Everything that it takes to start one attempt. The environment is never written down."""

    folder: Path  # the run folder
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(repr=False)
    stdin: str | None = field(default=None, repr=False)
    stop: tuple[float, float] = (10.0, 10.0)  # seconds after the interrupt, after the terminate
    grace: float = 30.0  # seconds after the final record
    final: tuple[tuple[str, tuple[str, ...]], ...] = ()
    timeout: float | None = None
    silence: float | None = None
    max_bytes: int = 64 * 1024 * 1024
    tail_bytes: int = 0  # of the end of what is more than that
    line_max: int = LINE_MAX
    joined: bool = False  # errors stand among the output, in one log
    mask: tuple[str, ...] = ()
    sandbox: Sandbox | None = None
    after: After | None = None
    calls: Calls | None = None
    seal: str = field(default="", repr=False)  # a secret that the end of a success tells


@dataclass(frozen=True, slots=True)
class Handle:
    """One attempt as its executor finds it again: the run folder, and a text of the executor's own.

    The store keeps the text (`Attempt.handle`). Without it the run folder alone tells.
    """

    run: Path
    text: str = ""


@dataclass(frozen=True, slots=True)
class Exit:
    """How an attempt ended."""

    exit_code: int | None = None
    signal: int | None = None
    launch_error: str = ""
    errno: int = 0  # of the launch error
    environment: bool = False  # the launch error is not the agent's, whatever its number
    stopped: str = ""  # why it was stopped: stop, timeout, silence, grace, limit
    limit: str = ""  # of its sandbox, that it reached
    final: bool = False  # it printed a final record
    record: str = ""  # the last one, if it is short
    cut: bool = False  # a full disk has cost the log a part, perhaps that record
    dropped: int = 0  # bytes of output
    started_at: int = 0
    ended_at: int = 0
    damage: str = ""  # what is wrong with the run folder; then nothing else is known
    seal: str = ""  # that of its orders, where it ended with code 0 and was not stopped
    noted: bool = False  # its supervisor died before it had saved the output and swept up


@dataclass(frozen=True, slots=True)
class Running:
    """The attempt runs."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt has ended, and its result waits in the run folder."""

    exit: Exit


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing runs, and there is no result: it was killed, or never started."""


State = Running | Ended | Gone


class Watch(Protocol):
    """Becomes ready when its attempt has ended; `Clock.wait` waits for it, among other things.

    An executor without a descriptor of its own gives a `fairlane.clock.Waker`, and sets it.
    """

    def fileno(self) -> int:
        """A descriptor that is readable when the attempt has ended."""

    def close(self) -> None:
        """Release the descriptor."""


class Executor(Protocol):
    """Starts attempts, finds them again, stops them, and reads what they print.

    An attempt survives the process that launched it. Every method works in any process of this
    host, with what `launch` left in the run folder and, where there is one, the handle's text.
    """

    def launch(self, orders: Orders) -> Handle:
        """Start an attempt; from its run folder alone another process can adopt it."""

    def poll(self, handle: Handle) -> State:
        """Whether it runs, has ended with a result, or is gone. Does not wait."""

    def watch(self, handle: Handle) -> Watch | None:
        """A watch on its end; None: it does not run any more, so `poll` tells what became of it."""

    def stop(self, handle: Handle) -> None:
        """Ask it to stop, in steps up to a kill. Does not wait; `poll` tells when it has ended."""

    def adopt(self, run: Path) -> Handle | None:
        """The attempt of this run folder, if it runs."""

    def revoke(self, run: Path) -> None:
        """An attempt of this run folder that has not shown itself yet never starts its agent."""

    def clean_up(self, run: Path) -> None:
        """The attempt is gone: kill whatever it left behind."""

    def output(self, run: Path, stream: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes that it printed, from a byte on; empty: there is no more yet."""

    def output_size(self, run: Path, stream: str) -> int:
        """How many bytes it has printed; 0 where they cannot be read."""

    def warm_up(self) -> None:
        """More launches may follow: prepare for the next one, where that makes it quicker."""

    def close(self) -> None:
        """No more launches follow: undo what was prepared. Attempts go on."""


#: Keys and tokens of well-known shape.
BUILT_IN = (
    r"sk-[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"AKIA[0-9A-Z]{16}",
    r"AIza[0-9A-Za-z_-]{30,}",
    r"xox[abposr]-[A-Za-z0-9-]{10,}",
    r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"(?i:bearer) [A-Za-z0-9._~+/-]{16,}=*",
)
_HIDDEN_NAME = r"(?i)key|token|secret|passw|credential|auth"
#: A value that is shorter says too little to be looked for.
_VALUE_MIN = 6


def patterns(own: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, ...]:
    """The built-in ones, the user's own, and the values of variables that are named as secrets."""
    values = [
        re.escape(value)
        for name, value in sorted(env.items())
        if re.search(_HIDDEN_NAME, name) and len(value) >= _VALUE_MIN
    ]
    return (*values, *own, *BUILT_IN)
