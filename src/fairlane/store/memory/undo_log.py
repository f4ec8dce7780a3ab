"""UndoLog: how every change of a transaction is undone, and what it has changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from fairlane.store.news import Mark, News, gather

K = TypeVar("K")
V = TypeVar("V")

#: Of how many transactions it is known what they have changed.
KEPT = 1024


class UndoLog:
    """Changes are made in place, and what undoes them is written down first."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., object], tuple[object, ...]]] | None = None
        self._mark = Mark(0, 0)
        self._past: deque[News] = deque(maxlen=KEPT)
        self._news = News()  # of the open transaction
        self._told = False  # whether somebody has read of what may be undone

    def mark(self) -> Mark:
        return self._mark

    def news(self, since: Mark) -> News:
        behind = self._mark.version - since.version
        if since.life != self._mark.life or not 0 <= behind <= len(self._past):
            return News(self._mark, anything=True)
        news = gather(self._mark, islice(reversed(self._past), behind))
        if self._undo:
            self._told = True
            news.include(self._news)
        return news

    def begin(self) -> None:
        """Opens a transaction."""
        if self._undo is not None:
            raise RuntimeError("a transaction is open in this thread: end it before the next one")
        self._undo, self._told = [], False

    def commit(self) -> bool:
        """Keeps what was written, if anything was."""
        wrote = bool(self._undo)
        if wrote:
            self._mark = self._mark._replace(version=self._mark.version + 1)
            self._past.append(self._news)
            self._news = News()
        self._undo = None
        return wrote

    def roll_back(self) -> None:
        """Takes everything back, the last change first."""
        for undo, args in reversed(self._undo or []):
            undo(*args)
        self._undo, self._news = None, News()
        if self._told:  # a mark from before may be of what was undone
            self._mark = self._mark._replace(life=self._mark.life + 1)

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
