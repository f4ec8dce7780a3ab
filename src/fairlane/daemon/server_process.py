"""ServerProcess: a process that lives as long as the daemon, and is started again if it dies."""

from __future__ import annotations

import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, NamedTuple

from fairlane.clock import SYSTEM, Clock

#: Between a death and the next start: twice as long each time. It is never given up: what was
#: wrong may be repaired, and its settings are read anew at each start.
AGAIN_SECONDS, AGAIN_MAX_SECONDS = 1.0, 600.0
#: A death so soon after its start is a quick one; after so many of them in a row it is down.
QUICK_SECONDS, DOWN_DEATHS = 60.0, 3
#: Once it has been down, it is up again when it has lived so long.
UP_SECONDS = 10.0
#: Exit code of what cannot work until somebody changes something.
USELESS = 2
#: How long it has to end by itself, and how long its last words may take.
END_SECONDS, WORDS_SECONDS = 10.0, 1.0
#: How many of its last lines are kept.
LINES_KEPT = 20


class Down(NamedTuple):
    """Why it does not live, and what it advised."""

    reason: str
    hint: str


class ServerProcess:
    """The end of its standard input ends it, so that it never outlives the daemon."""

    def __init__(
        self,
        words: Sequence[str],
        output: IO[bytes] | None,
        say: Callable[[str], None],
        clock: Clock = SYSTEM,
        note: Callable[[Down | None], None] = lambda down: None,
    ) -> None:
        """`note` is called when it is down, with None when it is not, and again if that raises."""
        self._clock, self._note = clock, note
        self._words, self._output, self._say = list(words), output, say
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = self._due = 0.0
        self._deaths = 0
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._copying: threading.Thread | None = None
        self._down: Down | None = None
        self._noted: Down | str | None = "nothing"

    def look(self, *_: object) -> None:
        """Start it, or start it again when it is time; note whether it is down."""
        self._look()
        if self._noted != self._down:
            self._note(self._down)
            self._noted = self._down

    def _look(self) -> None:
        now, process = self._clock.monotonic(), self._process
        if process is None:
            if now >= self._due:
                self._start()
            return
        code = process.poll()
        if code is not None:
            self._process = None
            if process.stdin is not None:
                process.stdin.close()
            self._count_death(code, quickly=now - self._begun < QUICK_SECONDS)
        elif now - self._begun >= UP_SECONDS:
            self._down = None

    def _count_death(self, code: int, quickly: bool) -> None:
        self._deaths = self._deaths + 1 if quickly else 1
        wait = min(AGAIN_MAX_SECONDS, AGAIN_SECONDS * 2 ** (self._deaths - 1))
        if code == USELESS:
            wait = AGAIN_MAX_SECONDS
        self._due = self._clock.monotonic() + wait
        if code == USELESS or self._deaths >= DOWN_DEATHS:
            self._down = self._last_words(code)
        self._say(f"warning: the server ended ({code}) and starts again in {wait:.0f}s")

    @property
    def is_there(self) -> bool:
        """Whether it lives, or will again soon."""
        return self._down is None

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self) -> None:
        self._begun = self._clock.monotonic()
        self._lines.clear()
        self._process = process = subprocess.Popen(
            self._words,
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.PIPE,
            start_new_session=True,  # an interrupt at the terminal is for the daemon
        )
        assert process.stderr is not None
        target = 2 if self._output is None else self._output.fileno()
        parts = (process.stderr, target, self._lines)
        self._copying = threading.Thread(target=_copy, args=parts, name="server", daemon=True)
        self._copying.start()

    def _last_words(self, code: int) -> Down:
        if self._copying is not None:
            self._copying.join(WORDS_SECONDS)
        lines = [line for line in self._lines if line]
        errors = [line for line in lines if line.startswith("error: ")] or lines[-1:]
        hints = [line for line in lines if line.startswith("hint: ")]
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        said = errors[-1].removeprefix("error: ") if errors else "it said nothing"
        return Down(f"{said} ({how})", hints[-1].removeprefix("hint: ") if hints else "")


def _copy(source: IO[bytes], target: int, lines: deque[str]) -> None:
    """Pass its errors on as they come, and keep the last ones."""
    with source:
        for line in source:
            lines.append(line.decode("utf-8", "replace").strip())
            with suppress(OSError):  # no room, or nobody reads
                os.write(target, line)
