"""How long tests wait for what must happen: one limit, far beyond what a busy machine needs."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

#: Whoever reaches it hangs. It is shorter than the timeout of a test, so that a test says what for.
LIMIT_SECONDS = 100.0


def until(what: Callable[[], Any], seconds: float = LIMIT_SECONDS) -> Any:
    """Wait for something to be so; the value that says so.

    It asks less and less often: whoever asks takes time from what should happen.
    """
    end, pause = monotonic() + seconds, 0.01
    while not (answer := what()):
        assert monotonic() < end, "it did not happen in time"
        sleep(pause)
        pause = min(1.2 * pause, 0.1)
    return answer
