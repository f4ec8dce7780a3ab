"""Amounts: the most that one attempt can have used or said, and clocks that fit every store."""

from __future__ import annotations

#: Most tokens of one counter of one attempt; more is a mistake of whoever says so.
TOKENS_MAX = 10**12
#: Most dollars of one attempt.
DOLLARS_MAX = 10**6
MICRO_DOLLARS_MAX = DOLLARS_MAX * 10**6
#: Longest line of output that can be a record, in bytes; a longer one is some file's content.
LINE_MAX = 8 * 1024 * 1024
#: The latest time of a share clock: the largest whole number that SQLite and Postgres keep.
CLOCK_MAX = 2**63 - 1


def clock_after(clock: int, by: int) -> int:
    """A share clock that has moved; at either end it stays where it is."""
    return max(-CLOCK_MAX, min(CLOCK_MAX, clock + by))
