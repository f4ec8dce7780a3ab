"""Lock: one scheduler a home folder; who it is stands in `daemon.json`."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from threading import Event as Signal
from typing import IO, Any

from fairlane.model.errors import Refused

#: How often a lock that is taken is tried again.
_LOOKS = 15


class HomeLock:
    """Held while this process schedules; gone with it, whatever ends it."""

    def __init__(self, home: Path) -> None:
        self._path = home / "daemon.lock"
        self._told = home / "daemon.json"
        self._file: IO[str] | None = None

    def take(self, what: str) -> None:
        """Take it, or say who has it."""
        held = self._path.open("a+", encoding="utf-8")
        if not _locked(held):
            held.close()
            other = holder(self._path.parent) or {}
            message = f"`fairlane {other.get('what', 'up')}` runs already (pid {other.get('pid')})"
            hint = "It starts whatever you add; `fairlane down` ends it."
            raise Refused(message, hint, code="already_up")
        self._file = held
        document = {"pid": os.getpid(), "what": what}
        self._told.write_text(json.dumps(document), encoding="utf-8")

    def release(self) -> None:
        """Somebody else may."""
        if self._file is not None:
            self._told.unlink(missing_ok=True)
            self._file.close()
            self._file = None


def _locked(held: IO[str]) -> bool:
    """Take the lock; somebody who only looks has it for a moment, which is waited for."""
    pause = Signal()
    for _ in range(_LOOKS):
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pause.wait(0.02)
        else:
            return True
    return False


def holder(home: Path) -> dict[str, Any] | None:
    """Who schedules this home; None: nobody."""
    try:
        with (home / "daemon.lock").open("r+", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
