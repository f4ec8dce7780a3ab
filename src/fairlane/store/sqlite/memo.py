"""Memo: what was read is not read again while nobody has written it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Memo:
    """Small tables and counters, kept from one transaction to the next.

    Another connection's commit changes `data_version`, and a row that this one changed behind
    the memo's back changes `total_changes`: either way everything is read anew.
    """

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}
        self._stamp = (-1, -1)

    def begin(self, connection: sqlite3.Connection) -> None:
        """A transaction has begun: forget everything if somebody else has written."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if self._stamp != (version, connection.total_changes):
            self._held.clear()
            self._stamp = (version, connection.total_changes)

    def commit(self, connection: sqlite3.Connection) -> None:
        """What was written since is known."""
        self._stamp = (self._stamp[0], connection.total_changes)

    def get(self, name: str, read: Callable[[], T]) -> T:
        """What has this name, read if it must be."""
        if name not in self._held:
            self._held[name] = read()
        found: T = self._held[name]
        return found

    def put(self, name: str, value: Any) -> None:
        """What has this name from now on."""
        self._held[name] = value

    def drop(self, name: str) -> None:
        """It has changed: read it anew."""
        self._held.pop(name, None)

    def clear(self) -> None:
        """The transaction was undone: nothing is known."""
        self._held.clear()
