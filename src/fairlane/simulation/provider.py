"""Providers with limits: requests and tokens in a window; beyond them every request gets a 429."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass as plain_dataclass
from typing import NamedTuple

from fairlane.model.instant import SECOND, Instant, Micros
from fairlane.model.record import dataclass

#: How long a refused request takes.
REFUSAL: Micros = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Limits:
    """What one pool may use in a window; None: without limit.

    A rate limit (`resets` false) asks callers to wait until the window has passed. A plan's quota
    (`resets` true) is used up until its window ends, and the provider says when that is.
    """

    window: Micros
    requests: int | None = None
    tokens: int | None = None
    resets: bool = False


class Refusal(NamedTuple):
    """A 429: how long to wait, or when the window opens again."""

    retry_after: Micros | None = None
    resets_at: Instant | None = None


@plain_dataclass(slots=True)
class _Window:
    """What was used since the window began; it begins with the first request after its end."""

    begin: Instant
    requests: int = 0
    tokens: int = 0


class Provider:
    """The accounts behind the pools of one simulation."""

    def __init__(self, limits: Mapping[str, Limits]) -> None:
        self._limits, self._windows = limits, dict[str, _Window]()

    def request(self, pool: str | None, now: Instant) -> Refusal | None:
        """An attempt begins: refused while its pool is beyond a limit."""
        limits = self._limits.get(pool or "")
        if pool is None or limits is None:
            return None
        window = self._window(pool, limits, now)
        if self._is_used_up(window, limits):
            return self._refusal(window, limits, now)
        window.requests += 1
        if limits.requests is not None and window.requests > limits.requests:
            return self._refusal(window, limits, now)
        return None

    def use(self, pool: str | None, tokens: int, now: Instant) -> Refusal | None:
        """Tokens are used; the refusal that every further request gets, if that was too much."""
        limits = self._limits.get(pool or "")
        if pool is None or limits is None:
            return None
        window = self._window(pool, limits, now)
        window.tokens += tokens
        return self._refusal(window, limits, now) if self._is_used_up(window, limits) else None

    def watches(self, pool: str | None) -> bool:
        """Whether a pool has limits."""
        return pool in self._limits

    def _window(self, pool: str, limits: Limits, now: Instant) -> _Window:
        window = self._windows.get(pool)
        if window is None or now >= window.begin + limits.window:
            window = self._windows[pool] = _Window(now)
        return window

    @staticmethod
    def _is_used_up(window: _Window, limits: Limits) -> bool:
        return limits.tokens is not None and window.tokens >= limits.tokens

    @staticmethod
    def _refusal(window: _Window, limits: Limits, now: Instant) -> Refusal:
        end = window.begin + limits.window
        return Refusal(resets_at=end) if limits.resets else Refusal(retry_after=end - now)
