"""Tokens and dollars: what counts, in which window, what is reserved, what a start costs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from fairlane.model.instant import MINUTE, Instant, instant, minute_of, to_datetime
from fairlane.policy.schema import is_calendar, window_micros

if TYPE_CHECKING:
    from collections.abc import Iterable

    #: Usage of one minute: (its first instant, tokens, micro-dollars).
    Bucket = tuple[Instant, int, int]


def window_start(window: str, now: Instant) -> Instant | None:
    """The first bucket that a window still holds; None: everything ever.

    A rolling window holds a minute until all of it is older than its length: never too little.
    """
    if is_calendar(window):
        return instant(_calendar_start(window, to_datetime(now)))
    length = window_micros(window)
    return None if length is None else minute_of(now - length)


def window_end(window: str, now: Instant) -> Instant | None:
    """When a calendar window ends; None: rolling windows lose parts, the total nothing."""
    if not is_calendar(window):
        return None
    start = _calendar_start(window, to_datetime(now))
    days = {"day": 1, "week": 7, "month": 31}[window]
    return instant(_calendar_start(window, start + timedelta(days=days)))


def spent(buckets: Iterable[Bucket], window: str, now: Instant) -> tuple[int, int]:
    """Tokens and micro-dollars in the window."""
    in_window = _held(buckets, window, now)
    return sum(tokens for _, tokens, _ in in_window), sum(usd for _, _, usd in in_window)


def leaves(
    buckets: Iterable[Bucket], window: str, now: Instant
) -> tuple[tuple[Instant, int, int], ...]:
    """When which part of what was spent leaves the window, by time."""
    end, length = window_end(window, now), window_micros(window)
    parts: dict[Instant, tuple[int, int]] = {}
    for minute, tokens, usd in _held(buckets, window, now):
        if end is not None:
            at = end
        elif length is not None:
            at = minute_of(minute) + MINUTE + length
        else:
            return ()
        before = parts.get(at, (0, 0))
        parts[at] = (before[0] + tokens, before[1] + usd)
    return tuple((at, *parts[at]) for at in sorted(parts))


def reserved(estimate: int, used: int) -> int:
    """What an attempt in flight is still expected to use."""
    return max(0, estimate - used)


def percentile70(values: Iterable[int]) -> int:
    """The smallest value that at least 70 % of them do not exceed (nearest rank)."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("there is no percentile of nothing")
    rank = -(-7 * len(ordered) // 10)
    return ordered[rank - 1]


def _held(buckets: Iterable[Bucket], window: str, now: Instant) -> list[Bucket]:
    start = window_start(window, now)
    return [bucket for bucket in buckets if start is None or minute_of(bucket[0]) >= start]


def _calendar_start(window: str, moment: datetime) -> datetime:
    """The first instant of the UTC day, week (from Monday) or month."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if window == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if window == "month" else day
