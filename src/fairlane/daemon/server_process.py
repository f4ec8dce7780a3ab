"""ServerProcess: a process that lives as long as the daemon, and is started again if it dies."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import IO

from fairlane.clock import SYSTEM, Clock

#: Between a death and the next start: twice as long each time.
AGAIN_SECONDS, AGAIN_MAX_SECONDS = 1.0, 60.0
#: Deaths within a minute of its start after which it is left.
DEATHS_MAX = 6
#: Exit code of what cannot work however often it is tried.
USELESS = 2
#: How long it has to end by itself.
END_SECONDS = 10.0


class ServerProcess:
    """The end of its standard input ends it, so that it never outlives the daemon."""

    def __init__(
        self,
        words: Sequence[str],
        output: IO[bytes] | None,
        say: Callable[[str], None],
        clock: Clock = SYSTEM,
    ) -> None:
        self._clock = clock
        self._words, self._output, self._say = list(words), output, say
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = self._due = 0.0
        self._deaths = 0

    def look(self, *_: object) -> None:
        """Start it, or start it again when it is time."""
        process = self._process
        if process is None:
            if self._deaths < DEATHS_MAX and self._clock.monotonic() >= self._due:
                self._start()
            return
        code = process.poll()
        if code is None:
            return
        self._process = None
        if process.stdin is not None:
            process.stdin.close()
        quickly = self._clock.monotonic() - self._begun < AGAIN_MAX_SECONDS
        self._deaths = DEATHS_MAX if code == USELESS else self._deaths + 1 if quickly else 1
        wait = min(AGAIN_MAX_SECONDS, AGAIN_SECONDS * 2 ** (self._deaths - 1))
        self._due = self._clock.monotonic() + wait
        then = "is left" if self._deaths >= DEATHS_MAX else f"starts again in {wait:.0f}s"
        self._say(f"warning: the server ended ({code}) and {then}")

    @property
    def is_there(self) -> bool:
        """Whether it lives, or will again."""
        return self._process is not None or self._deaths < DEATHS_MAX

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        self._begun = self._clock.monotonic()
        self._process = subprocess.Popen(
            self._words,
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,  # an interrupt at the terminal is for the daemon
        )
