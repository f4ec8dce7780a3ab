"""Trouble: what goes wrong in the loop is said once and tried again; damage ends the daemon."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairlane.clock import Clock
from fairlane.model.errors import FairlaneError, is_environmental

#: Before the loop tries again: twice as long each time.
AGAIN_SECONDS, AGAIN_MAX_SECONDS = 0.1, 5.0
#: How long the first turn is tried again.
START_SECONDS = 10.0
#: Trouble that was away for so long is said again.
QUIET_SECONDS = 60.0


class Trouble:
    """Counts what goes wrong, and says each thing once as long as it lasts."""

    def __init__(self, say: Callable[[str], None], clock: Clock) -> None:
        self._say, self._clock = say, clock
        self._seen_at: dict[str, float] = {}  # warning -> when it was met last
        self._unsaid: list[str] = []
        self._met = False
        self._begun = False  # whether a turn has gone well
        self._first_at: float | None = None  # when the first turn failed first
        self.pause = 0.0  # seconds before the next turn

    def attempt(self, step: Callable[[], object]) -> bool:
        """Do one step of a turn; whether the next ones make sense.

        Damage is raised. Before a turn has gone well, so is a bug, and what lasts.
        """
        try:
            step()
        except Exception as error:
            if isinstance(error, BrokenPipeError) or _is_damage(error) or self._is_hopeless(error):
                raise
            self._met = True
            self.warn(_words(error))
            return not is_environmental(error)
        return True

    def end_turn(self) -> bool:
        """Whether the turn went well; else the pause is longer than the one before."""
        self._say_all()
        if not self._met:
            if self.pause:
                self._tell("the loop goes on")
            self.pause, self._begun = 0.0, True
            return True
        self._met = False
        self.pause = min(AGAIN_MAX_SECONDS, max(AGAIN_SECONDS, 2 * self.pause))
        return False

    def warn(self, message: str) -> None:
        """Say it, unless it was said and has lasted since."""
        now = self._clock.monotonic()
        before = self._seen_at.get(message)
        self._seen_at[message] = now
        if before is None or now - before > QUIET_SECONDS:
            self._tell(f"warning: {message}")

    def _is_hopeless(self, error: Exception) -> bool:
        """Whether the loop has not come up, and would not by waiting."""
        now = self._clock.monotonic()
        self._first_at = now if self._first_at is None else self._first_at
        lasts = now - self._first_at >= START_SECONDS
        return not self._begun and (lasts or not is_environmental(error))

    def _tell(self, message: str) -> None:
        self._unsaid.append(message)
        self._say_all()

    def _say_all(self) -> None:
        with suppress(OSError):  # the log's disk is full too: said when there is room
            while self._unsaid:
                self._say(self._unsaid[0])
                del self._unsaid[0]


def _is_damage(error: Exception) -> bool:
    return isinstance(error, FairlaneError) and error.error_code == "corrupt"


def _words(error: Exception) -> str:
    if isinstance(error, FairlaneError):
        return " ".join(part for part in (f"{error.message}.", error.hint) if part)
    if isinstance(error, OSError):
        return f"{error}. The loop waits and tries again."
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno} in {place.name}"
    return f"{type(error).__name__}: {error} ({where}). This is a bug in Fairlane."
