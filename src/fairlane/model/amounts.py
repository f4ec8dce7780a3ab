"""Limits of what one attempt can use or print."""

from __future__ import annotations

#: Most tokens of one counter of one attempt; a larger number is a mistake. The four counters of
#: two thousand such attempts a day can be summed for ten years in 63 bits, and so can dollars.
TOKENS_MAX = 10**11
#: Most dollars of one attempt.
DOLLARS_MAX = 10**6
MICRO_DOLLARS_MAX = DOLLARS_MAX * 10**6
#: Most bytes of an agent's answer that are kept.
ANSWER_BYTES = 64 * 1024
#: Longest line of output that can be a record, in bytes; a longer one is some file's content.
LINE_MAX = 8 * 1024 * 1024
