"""History: compacted once a day; what is left of old tasks is removed in a thread."""

from __future__ import annotations

from collections.abc import Callable

from fairlane.engine.context import Context
from fairlane.engine.decisions import compact_if_due
from fairlane.engine.forget import forget_compacted
from fairlane.policy.policy import Policy
from fairlane.runtime.launch import ThreadsOf


class History:
    """Bounds what is kept."""

    def __init__(self, context: Context, threads: ThreadsOf) -> None:
        self._context, self._thread = context, threads(1, "forget")

    def look(self, policy: Policy, is_over: Callable[[], bool]) -> None:
        """Compact if that is due; the loop waits neither for git nor for folders."""
        if compact_if_due(self._context):
            words = (self._context, policy.history.keep, is_over)
            self._thread.submit(forget_compacted, *words)

    def close(self) -> None:
        """Wait for what has begun: it ends when it is over."""
        self._thread.shutdown(wait=True)
