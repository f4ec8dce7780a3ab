"""History: compacted once a day, and what is left of old tasks removed, in a thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from fairlane.engine.compaction import compact, is_due
from fairlane.engine.context import Context
from fairlane.engine.forget import forget_compacted
from fairlane.policy.policy import Policy
from fairlane.runtime.launch import ThreadsOf


class History:
    """Bounds what is kept."""

    def __init__(self, context: Context, threads: ThreadsOf) -> None:
        self._context, self._thread = context, threads(1, "history")
        self._work: Future[None] | None = None
        self._closing = False

    def look(self, policy: Policy, is_over: Callable[[], bool]) -> None:
        """Compact if that is due: the loop goes on meanwhile; an error of it is raised here."""
        work = self._work
        if work is not None and not work.done():
            return
        self._work = None
        if work is not None:
            work.result()
        if is_due(self._context):
            self._work = self._thread.submit(self._shrink, policy, is_over)

    def close(self) -> None:
        """End a compaction after its part, and wait for what else has begun."""
        self._closing = True
        self._thread.shutdown(wait=True)

    def _shrink(self, policy: Policy, is_over: Callable[[], bool]) -> None:
        """Compact, then forget what is left of tasks; the next run goes on where this one ends."""
        if compact(self._context, lambda: self._closing or is_over()) is not None:
            forget_compacted(self._context, policy.history.keep, is_over)
