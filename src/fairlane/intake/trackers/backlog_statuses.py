"""The statuses of a Backlog.md board: which of its names are open, somebody's, or over.

What comes before the one for work in progress is open, what comes from the one for done is closed.
Where no name says so, the first is open and the last is closed.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.intake.sources.base import Standing
from fairlane.model.errors import Invalid

DEFAULTS = ("To Do", "In Progress", "Done")
#: Names that say what they mean, without case.
_BUSY = ("in progress", "in-progress", "doing", "wip", "started", "active")
_DONE = ("done", "complete", "completed", "closed")
_DROPPED = ("canceled", "cancelled", "won't do", "wont do", "won't fix", "rejected", "archived")
_ON_HOLD = ("blocked", "on hold", "on-hold", "waiting", "icebox", "draft")


class Statuses:
    """The names of one board, in its order."""

    def __init__(self, names: Sequence[str], default: str = "") -> None:
        self._names = [name for name in names if name.strip()] or list(DEFAULTS)
        folded = [name.casefold() for name in self._names]
        last = len(folded) - 1
        done = next((at for at, name in enumerate(folded) if at and name in _DONE), last)
        busy = next((at for at, name in enumerate(folded[:done]) if at and name in _BUSY), None)
        self._standing = {
            name: self._meaning(name, at, done, busy) for at, name in enumerate(folded)
        }
        opened = [name for name in self._names if self.standing(name) is Standing.OPEN]
        usual = [name for name in opened if name.casefold() == default.casefold()]
        self.first = [*usual, *opened, self._names[0]][0]
        self.busy = self._names[busy or 1] if busy or done > 1 else self.first
        self.done = self._names[done]

    def _meaning(self, name: str, at: int, done: int, busy: int | None) -> Standing:
        if at >= done or name in _DROPPED:
            return Standing.CLOSED
        is_open = at == 0 or (busy is not None and at < busy and name not in _ON_HOLD)
        return Standing.OPEN if is_open else Standing.TAKEN

    def standing(self, status: str) -> Standing:
        """What a status means; one that the board does not have is refused."""
        known = self._standing.get(status.casefold())
        if known is None:
            raise Invalid(f"no status of this board: {status!r}")
        return known

    def is_open(self, status: str) -> bool:
        """Whether a task with this status may be taken."""
        return self._standing.get(status.casefold()) is Standing.OPEN

    def said(self, task: object) -> str:
        """What the board calls the status of a task; one that needs help is still somebody's."""
        if task == "done":
            return self.done
        return self.busy if task in ("leased", "running", "parked") else self.first

    def is_as_told(self, status: str, task: object) -> bool:
        """Whether it is what was told last; before anything was told, any that is open."""
        said = self.said(task)
        return status.casefold() == said.casefold() or (said == self.first and self.is_open(status))
