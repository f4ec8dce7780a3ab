"""A warm runner: it never gets orders, and forks runners that do, without the start of Python.

Its standard input is a socket instead of a pipe. Each request is a byte and the pipe of a new
runner's orders, which this process never reads: so it knows no secret of any attempt. It answers
with the number of the new runner, and ends when nobody can ask any more. The runners live on.
"""

from __future__ import annotations

import _socket  # enough to receive; `socket` itself takes six times as long to import
import contextlib
import gc
import os
import signal
import stat
import sys

#: Descriptors in the ancillary data of a socket are C integers.
FD_BYTES = 4


def is_warm() -> bool:
    """Whether this process is to fork runners."""
    return stat.S_ISSOCK(os.fstat(0).st_mode)


def serve() -> None:
    """Return in each new runner, whose standard input is the pipe of its orders."""
    with contextlib.suppress(ImportError):
        import _ctypes  # noqa: F401  # what every runner imports when it has started
    reaps = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps runners
    control = _socket.socket(fileno=os.dup(0))
    gc.freeze()  # a collection in a runner leaves these pages shared
    while (orders := _next_request(control)) is not None:
        try:
            pid = os.fork()
        except OSError:
            pid = -1  # the launcher starts a fresh one, or says what is missing
        if pid == 0:
            control.close()
            signal.signal(signal.SIGCHLD, reaps)
            os.setsid()
            os.dup2(orders, 0)
            os.close(orders)
            return
        os.close(orders)
        control.send(b"%d" % pid)
    sys.exit(0)


def _next_request(control: _socket.socket) -> int | None:
    """The orders' pipe of the next runner; None: nobody can ask any more."""
    data, found, *_ = control.recvmsg(1, _socket.CMSG_LEN(FD_BYTES))
    if not data or not found:
        return None
    return int.from_bytes(found[0][2][:FD_BYTES], sys.byteorder)
