"""One thing to do with a source, in a thread: nobody has to wait for it, and it can be ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event as Signal
from threading import Thread, get_native_id

from fairlane.clock import Clock, Waker
from fairlane.intake.sources.base import Found
from fairlane.model.documents.sources import WrittenDocument
from fairlane.model.errors import FairlaneError
from fairlane.service.sync import syncing

#: What a source has, or what it was told.
Result = Found | WrittenDocument
#: Gives it; it is told how to ask whether nobody waits any more.
Work = Callable[[Callable[[], bool]], Result]
#: Runs a function of a name; nobody waits for it.
Spawn = Callable[[Callable[[], None], str], object]


def in_thread(work: Callable[[], None], name: str) -> None:
    """Run it in a thread that ends with the process."""
    Thread(target=work, name=name, daemon=True).start()


class SourceJob:
    """Something to do with one source, in a thread that nobody has to wait for."""

    def __init__(self, what: str, work: Work, waker: Waker, clock: Clock, spawn: Spawn) -> None:
        self.what, self._work, self._waker, self._clock = what, work, waker, clock
        self.result: Result | None = None
        self.error: FairlaneError | None = None
        self.began, self.seconds = clock.monotonic(), 0.0
        self.done = False
        self._halt = Signal()
        self._thread = 0  # as the kernel numbers it
        spawn(self._do, what)

    def _do(self) -> None:
        self._thread = get_native_id()
        try:
            self.result = self._work(self._halt.is_set)
        except Exception as error:  # a source is somebody else's code too
            self.error = syncing.explained(error)
        self.seconds = self._clock.monotonic() - self.began
        self.done = True
        self._waker.set()

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._halt.is_set()

    def give_up(self) -> None:
        """Want no answer: end the programs of its thread, with all that they started."""
        self._halt.set()
        with suppress(OSError):
            text = Path(f"/proc/self/task/{self._thread}/children").read_text(encoding="ascii")
            for pid in map(int, text.split()):
                with suppress(ProcessLookupError):
                    group = os.getpgid(pid)
                    ours = group == os.getpgid(0)
                    os.kill(pid, signal.SIGKILL) if ours else os.killpg(group, signal.SIGKILL)
