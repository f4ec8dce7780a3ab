"""Time as a port: the instant that decides, elapsed seconds, waiting. Only this file reads it."""

from __future__ import annotations

import itertools
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlane.model.instant import Instant

T = TypeVar("T")


class Waitable(Protocol):
    """What a wait can end for: readable when something has happened."""

    def fileno(self) -> int:
        """Its file descriptor."""


class Clock(Protocol):
    """Reads the time, and lets it pass."""

    def now(self) -> Instant:
        """The instant that decides, in microseconds of UTC; a person can set it."""

    def monotonic(self) -> float:
        """Seconds since some start; nobody can set it."""

    def wait(self, timeout: float | None, *waitables: Waitable) -> list[Waitable]:
        """Sleep until one of these is ready, at most `timeout` seconds; those that are ready."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> Instant:
        """Whole microseconds of UTC."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """Seconds; sleep of the machine does not count."""
        return time.monotonic()

    def wait(self, timeout: float | None, *waitables: Waitable) -> list[Waitable]:
        """Sleep in the kernel."""
        if not waitables and timeout is not None:
            time.sleep(max(0.0, timeout))
            return []
        import select  # most commands never wait

        poll, known = select.poll(), {}
        for waitable in waitables:
            known[waitable.fileno()] = waitable
            poll.register(waitable.fileno(), select.POLLIN)
        ready = poll.poll(None if timeout is None else max(0.0, timeout) * 1000)
        return [known[number] for number, _ in ready]


SYSTEM = SystemClock()


def poll(
    ask: Callable[[], T | None], seconds: float, every: float, clock: Clock = SYSTEM
) -> T | None:
    """Ask until the answer is true, where nothing tells of the change; the last answer."""
    end = clock.monotonic() + seconds
    while not (answer := ask()) and clock.monotonic() < end:
        clock.wait(every)
    return answer


class FixedClock(SystemClock):
    """Decides by a fixed instant until it is set (`--now`, tests, replay); waiting is real."""

    def __init__(self, at: Instant) -> None:
        self.at = at

    def now(self) -> Instant:
        """The instant it was set to."""
        return self.at


class VirtualClock:
    """Time that passes by waiting alone: an hour takes no time. For tests and simulation."""

    def __init__(self, at: Instant) -> None:
        self.at = at
        self.elapsed = 0.0
        self._alarms: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def now(self) -> Instant:
        """The start, and what has passed since."""
        return self.at + round(self.elapsed * 1_000_000)

    def monotonic(self) -> float:
        """Seconds that have passed."""
        return self.elapsed

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Call this after a number of seconds; it ends the wait of that moment."""
        from heapq import heappush

        heappush(self._alarms, (self.elapsed + seconds, next(self._numbers), action))

    def next_alarm(self) -> float | None:
        """When the next call is due, in seconds; None: never."""
        return self._alarms[0][0] if self._alarms else None

    def wait(self, timeout: float | None, *waitables: Waitable) -> list[Waitable]:
        """Pass to the next alarm, or to the end of the timeout; a waker that is set is ready."""
        from heapq import heappop

        if ready := _set_wakers(waitables):
            return ready
        end = float("inf") if timeout is None else self.elapsed + max(0.0, timeout)
        if self._alarms and self._alarms[0][0] <= end:
            self.elapsed, _, action = heappop(self._alarms)
            action()
        elif timeout is None:
            raise RuntimeError("nothing would ever end this wait")
        else:
            self.elapsed = end
        return _set_wakers(waitables)


class Waker:
    """Ends a wait from another thread or a signal handler; stays ready until it is cleared."""

    _reading = writing = -1

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """The end that a wait reads."""
        return self._reading

    @property
    def is_set(self) -> bool:
        """Whether a wait would end at once."""
        return bool(SYSTEM.wait(0.0, self))

    def set(self) -> None:
        """End the wait."""
        with suppress(OSError):  # full: it is ready; closed: nobody waits
            os.write(self.writing, b"!")

    def clear(self) -> None:
        """Waits from now on sleep again."""
        with suppress(OSError):
            os.read(self._reading, 4096)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Nobody waits for it any more."""
        for end in (self._reading, self.writing):
            with suppress(OSError):
                os.close(end)
        self._reading = self.writing = -1


def _set_wakers(waitables: Sequence[Waitable]) -> list[Waitable]:
    return [waker for waker in waitables if isinstance(waker, Waker) and waker.is_set]
