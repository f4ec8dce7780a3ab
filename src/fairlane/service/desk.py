"""Desk: what every operation works with: the store, the policy, the settings, the time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairlane.clock import Clock
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import Instant
from fairlane.policy.policy import Policy
from fairlane.settings import Settings
from fairlane.store.base import Reading, Store

#: The store's file in the home folder.
STORE_FILE = "fairlane.db"
#: What tells one content of a file from another: inode, time, size; None: no file.
FileMark = tuple[int, int, int] | None


@dataclass(slots=True)
class Desk:
    """One per program; operations take it as their first argument."""

    home: Path
    store: Store
    settings: Settings
    clock: Clock
    actor: str
    warnings: list[str] = field(default_factory=list)  # for people, on standard error
    db: str | None = None  # the store's URL, where a caller named one
    _policy: tuple[FileMark, Policy] | None = field(default=None, init=False, repr=False)

    @property
    def policy_file(self) -> Path:
        """The policy file of this home."""
        return self.home / "policy.toml"

    def now(self) -> Instant:
        """The time that decides."""
        return self.clock.now()

    def policy(self) -> Policy:
        """The policy in force; a broken file refuses whatever would decide or accept something.

        It is read again when the file has changed.
        """
        mark = _mark(f"{self.home}/policy.toml")
        if self._policy is None or self._policy[0] != mark:
            self._policy = (mark, Policy.load(self.policy_file))
        return self._policy[1]

    def policy_for_reading(self, reading: Reading) -> Policy:
        """The policy in force; with a broken file the last good one, and a warning."""
        try:
            return self.policy()
        except FairlaneError as error:
            digest = reading.value("policy")
            text = reading.policy_text(str(digest)) if digest else None
            shown = "the last good policy is shown" if text else "the defaults are shown"
            self.warnings.append(f"{error.message} ({shown})")
            if not text:
                return Policy.preset("balanced")
            return replace(parse_recorded(text), preset_name="last good")  # it was not recorded


def _mark(path: str) -> FileMark:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked before every operation
    except FileNotFoundError:
        return None
    except OSError:
        return (0, 0, 0)  # not readable: loading it says why
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def parse_recorded(text: str) -> Policy:
    """A policy as decisions keep it."""
    import json

    return Policy.parse(json.loads(text), "recorded policy")
