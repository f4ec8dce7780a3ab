"""UndoLog: how every change of a transaction is undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class UndoLog:
    """Changes are made in place, and what undoes them is written down first."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., object], tuple[object, ...]]] | None = None
        self._version = 0

    def version(self) -> int:
        return self._version + bool(self._undo)

    def begin(self) -> None:
        """Opens a transaction."""
        if self._undo is not None:
            raise RuntimeError("a transaction is open in this thread: end it before the next one")
        self._undo = []

    def commit(self) -> None:
        """Keeps what was written."""
        self._version = self.version()
        self._undo = None

    def roll_back(self) -> None:
        """Takes everything back, the last change first."""
        for undo, args in reversed(self._undo or []):
            undo(*args)
        self._undo = None

    def _note(self, undo: Callable[..., object], *args: object) -> None:
        """How the change that follows is undone."""
        if self._undo is None:
            raise RuntimeError("this view only reads: open `write()` to change something")
        self._undo.append((undo, args))

    def _set(self, table: dict[K, V], key: K, value: V | None) -> None:
        """One entry of a table; None takes it out."""
        self._note(_put, table, key, table.get(key))
        _put(table, key, value)


def _put(table: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
