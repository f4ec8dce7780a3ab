"""Lock: one scheduler a home folder; who it is stands in `daemon.json`.

Commands that start or take in attempts themselves have locks of their own for a moment; a
scheduler waits for them before it begins, and they leave the rest to it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event as Signal
from typing import IO, Any

from fairlane.model.errors import Refused, TryLater

#: Starting: many may at once. Settling: one at a time.
STARTING, SETTLING = "starting.lock", "settling.lock"
#: The lock of the scheduler.
DAEMON = "daemon.lock"
#: How long one who only looks has the lock at most, and how long a command at work is waited for.
_LOOK_SECONDS, COMMAND_SECONDS = 0.3, 60.0
_PAUSE_SECONDS = 0.02


class HomeLock:
    """Held while this process schedules; gone with it, whatever ends it."""

    def __init__(self, home: Path) -> None:
        self._path = home / DAEMON
        self._told = home / "daemon.json"
        self._file: IO[str] | None = None
        self._commands = ExitStack()  # kept from starting and settling until this one has begun

    def take(self, what: str) -> None:
        """Take it, or say who has it."""
        held = self._path.open("a+", encoding="utf-8")
        if not _locked(held, fcntl.LOCK_EX, _LOOK_SECONDS):
            held.close()
            other = holder(self._path.parent) or {}
            message = f"`fairlane {other.get('what', 'up')}` runs already (pid {other.get('pid')})"
            hint = "It starts whatever you add; `fairlane down` ends it."
            raise Refused(message, hint, code="already_up")
        self._file = held
        self._document = {"pid": os.getpid(), "what": what}
        self._told.write_text(json.dumps(self._document), encoding="utf-8")
        try:
            for name in (STARTING, SETTLING):
                self._commands.enter_context(brief(self._path.parent, name))
        except TryLater:
            self.release()
            raise

    def begun(self) -> None:
        """It has come up: whoever started it waits for this, and commands may start beside it."""
        self._commands.close()
        document = json.dumps(self._document | {"begun": True})
        with suppress(OSError):  # no room: what was written before is as good for the others
            beside = self._told.with_suffix(".new")
            beside.write_text(document, encoding="utf-8")
            beside.replace(self._told)

    def release(self) -> None:
        """Somebody else may."""
        self._commands.close()
        if self._file is not None:
            self._told.unlink(missing_ok=True)
            self._file.close()
            self._file = None


@contextmanager
def brief(
    home: Path, name: str, shared: bool = False, seconds: float = COMMAND_SECONDS
) -> Iterator[None]:
    """One of the commands' locks; another command that has it is waited for."""
    with (home / name).open("a", encoding="utf-8") as held:
        if not _locked(held, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, seconds):
            what = "starts agents" if name == STARTING else "takes results in"
            raise TryLater(f"another command {what} in {home}", "Try again.", "busy")
        yield


def _locked(held: IO[str], how: int, seconds: float) -> bool:
    """Take the lock; who has it for a moment only is waited for."""
    pause = Signal()
    for _ in range(1 + int(seconds / _PAUSE_SECONDS)):
        with suppress(OSError):
            fcntl.flock(held, how | fcntl.LOCK_NB)
            return True
        pause.wait(_PAUSE_SECONDS)
    return False


def holder(home: Path) -> dict[str, Any] | None:
    """Who schedules this home; None: nobody."""
    try:
        with (home / DAEMON).open("r+", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)  # others may look too
        return None
    except FileNotFoundError:
        return None
    except OSError:
        pass
    try:
        found: dict[str, Any] = json.loads((home / "daemon.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"pid": None, "what": "up"}
    return found
