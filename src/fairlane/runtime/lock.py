"""Lock: one scheduler a home folder; `daemon.json` names it.

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
from typing import IO, TypedDict

from fairlane.careful_files import opener
from fairlane.clock import poll
from fairlane.model.errors import Refused, TryLater
from fairlane.model.names import VERSION

#: Starting: many may at once. Settling: one at a time.
STARTING, SETTLING = "starting.lock", "settling.lock"
#: The lock of the scheduler.
DAEMON = "daemon.lock"
#: How long one who only looks has the lock at most, and how long a command at work is waited for.
_LOOK_SECONDS, COMMAND_SECONDS = 0.3, 60.0
_PAUSE_SECONDS = 0.02


class Holder(TypedDict):
    """Who schedules a home folder."""

    pid: int  # 0: not known
    what: str
    begun: bool  # whether it has come up
    version: str  # of Fairlane; empty: older than these records


class HomeLock:
    """Held while this process schedules; gone with it, whatever ends it."""

    def __init__(self, home: Path) -> None:
        self._path = home / DAEMON
        self._told = home / "daemon.json"
        self._file: IO[str] | None = None
        self._commands = ExitStack()  # kept from starting and settling until this one has begun

    def take(self, what: str) -> None:
        """Take it, or say who has it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        file = os.fdopen(opener(str(self._path), flags), "a+", encoding="utf-8")
        if not _locked(file, fcntl.LOCK_EX, _LOOK_SECONDS):
            file.close()
            other = holder(self._path.parent) or Holder(pid=0, what="up", begun=False, version="")
            message = f"`fairlane {other['what']}` runs already (pid {other['pid']})"
            hint = "It starts whatever you add; `fairlane down` ends it."
            raise Refused(message, hint, code="already_up")
        self._file = file
        self._document = Holder(pid=os.getpid(), what=what, begun=False, version=VERSION)
        with open(self._told, "w", encoding="utf-8", opener=opener) as told:
            told.write(json.dumps(self._document))
        try:
            for name in (STARTING, SETTLING):
                self._commands.enter_context(brief(self._path.parent, name))
        except TryLater:
            self.release()
            raise

    def admit_commands(self) -> None:
        """What was there before is taken over: commands may start and settle beside it."""
        self._commands.close()

    def mark_begun(self) -> None:
        """A whole turn has gone well: `up --detach` waits for this."""
        if not self._document["begun"]:
            self._document["begun"] = True
            text = json.dumps(self._document) + " "  # as long as before: a full disk has room
            with suppress(OSError), self._told.open("r+", encoding="utf-8") as file:
                file.write(text)

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
    with open(home / name, "a", encoding="utf-8", opener=opener) as file:
        if not _locked(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, seconds):
            what = "starts agents" if name == STARTING else "takes results in"
            raise TryLater(f"another command {what} in {home}", "Try again.", "busy")
        yield


def _locked(file: IO[str], how: int, seconds: float) -> bool:
    """Take the lock; who has it for a moment only is waited for."""

    def take() -> bool:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    return bool(poll(take, seconds, _PAUSE_SECONDS))


def holder(home: Path) -> Holder | None:
    """Who schedules this home; None: nobody."""
    try:
        with (home / DAEMON).open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # others may look too
        return None
    except FileNotFoundError:
        return None
    except OSError:
        pass
    try:
        document: object = json.loads((home / "daemon.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        document = None
    known = document if isinstance(document, dict) else {}
    pid = known.get("pid")
    return {
        "pid": pid if isinstance(pid, int) else 0,
        "what": str(known.get("what", "up")),
        "begun": known.get("begun") is True,
        "version": str(known.get("version", "")),
    }
