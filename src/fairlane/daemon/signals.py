"""Signals end the daemon's loop: its agents go on, or are stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from fairlane.clock import Waker


@contextmanager
def signals_taken(stop: Callable[[str], None], waker: Waker) -> Iterator[None]:
    """As long as this block lasts, a signal calls `stop` and wakes a wait.

    Signals reach the main thread alone: a daemon in another one is stopped by its caller.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        stop("stop" if number == signal.SIGUSR1 else "leave")

    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` means: stay
        numbers.append(signal.SIGHUP)
    signal.set_wakeup_fd(waker.writing, warn_on_full_buffer=False)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
