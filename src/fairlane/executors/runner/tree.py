"""Every process of a run, also one that left its group, its parent and its environment behind.

The runner is the subreaper of its agent: an orphan becomes a child of the runner, so that whatever
an agent started is found below the runner, and nothing of it stays.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from .files import marked

PR_SET_CHILD_SUBREAPER = 36
#: How long what is left is killed again and again.
SWEEP_SECONDS = 20.0
#: The kernel's list of children may miss one that has just come.
EMPTY_LOOKS = 3


def adopt_orphans() -> None:
    """From now on every orphan below this process becomes its child."""
    words = (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:  # the core of `ctypes` is enough for one call; all of it takes four times as long
        import _ctypes

        itself = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # this program, its libraries
        _ctypes.call_function(_ctypes.dlsym(itself, "prctl"), words)
    except (ImportError, AttributeError, TypeError):  # another Python's core may differ
        from ctypes import CDLL

        CDLL(None).prctl(*words)


def reap_orphans(agent: int) -> None:
    """Reap the children that have ended; the agent's end is taken in elsewhere."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, flags)) is not None and ended.si_pid != agent:
            os.waitpid(ended.si_pid, 0)


def sweep(group: int, marker: str) -> None:
    """Nothing stays behind: the group, and whatever is below this process or has the run's mark.

    What loses its parent becomes a child of this process, so children alone are killed, without
    a pause: the next one may have started the one after it already.
    """
    send(signal.SIGKILL, group=group)
    reap_orphans(group)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    give_up, empty = time.monotonic() + SWEEP_SECONDS, 0
    while empty < EMPTY_LOOKS and time.monotonic() < give_up:
        left = children()
        if not left and empty == EMPTY_LOOKS - 1:
            left = marked(marker)
        for pid in left:
            send(signal.SIGKILL, pid)
        empty = 0 if left else empty + 1
    signal.signal(signal.SIGCHLD, before)  # who ignores it learns no exit code, nor do its children


def send(number: int, pid: int = 0, group: int = 0) -> None:
    """A signal for a process or a group, if it is there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if pid:
            os.kill(pid, number)
        else:
            os.killpg(group, number)


def children() -> list[int]:
    """The children of this process, youngest first, without runners.

    An attempt that adds a task in direct mode starts a runner, which owns an attempt of its own.
    """
    own = os.getpid()
    return [pid for pid in _children() if not _is_like(pid, own)]


def runner_of(pid: int) -> int:
    """The nearest runner above a process; 0: there is none."""
    own = os.getpid()
    while (pid := _parent(pid)) > 1 and not _is_like(pid, own):
        pass
    return pid if pid > 1 else 0


def _children() -> list[int]:
    """All, youngest first; the kernel's own list is quicker than what is started meanwhile."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return [int(pid) for pid in reversed(file.read().split())]
    except FileNotFoundError:  # a kernel without this file
        own, names = os.getpid(), os.listdir("/proc")
        return [int(name) for name in names if name.isdigit() and _parent(int(name)) == own]


def _parent(pid: int) -> int:
    """The parent of a process; 0: it has none, or has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
    return 0


def _is_like(pid: int, own: int) -> bool:
    """Whether a process has what all runners have, and no mark of a sandbox.

    An agent can give a process any command line. Landlock marks its processes: no new privileges.
    """
    try:
        return all(look(pid) == look(own) for look in (_words, _program, _mark))
    except OSError:
        return False  # it has ended


def _words(pid: int) -> list[bytes]:
    """The command line of a process without its program, as far as all runners have it."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")[1:5]


def _program(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/exe")


def _mark(pid: int) -> list[bytes]:
    with open(f"/proc/{pid}/status", "rb") as file:
        return [line for line in file if line.startswith(b"NoNewPrivs:")]


def usage(besides: int) -> tuple[int, int]:
    """How many processes live below this one, and how many bytes of memory they hold.

    The process `besides` does not count, nor does what it has started.
    """
    below: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != besides:
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] not in b"ZX":
                    below.setdefault(int(fields[1]), []).append((int(name), int(fields[21])))
    count, pages, parents = 0, 0, [os.getpid()]
    while parents:
        for pid, resident in below.get(parents.pop(), ()):
            count, pages = count + 1, pages + resident
            parents.append(pid)
    return count, pages * os.sysconf("SC_PAGE_SIZE")
