"""OpenFiles: as many agents as the limit on open files has room for, and a word if they are few."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.engine.context import Context, slots_of
from fairlane.policy.policy import Policy
from fairlane.service.home import limits, troubles

_CODE = "open_files"


class OpenFiles:
    """The limit of this process."""

    def __init__(self, context: Context, say: Callable[[str], None]) -> None:
        self._context, self._say = context, say
        self._files: limits.Files | None = None  # where they are too few for all slots
        self.enough = True

    def fit(self, policy: Policy) -> None:
        """Make room for all slots; where the hard limit has none, tell people so."""
        slots = slots_of(self._context.settings, policy)
        limits.make_room(slots)
        files = limits.files_for(slots)
        if files is None:
            troubles.end(self._context, _CODE)
        elif files != self._files:
            message = files.message(slots)
            self._say(f"warning: {message}. {limits.HINT}")
            troubles.report(self._context, _CODE, message, limits.HINT)
        self._files, self.enough = files, files is None

    def most(self, limit: int | None, running: int) -> int | None:
        """How many may start in a round beside those that run, where there is not enough."""
        if self._files is None:
            return limit
        room = max(0, self._files.agents - running)
        return room if limit is None else min(room, limit)
