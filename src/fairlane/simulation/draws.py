"""Draws: luck that belongs to what it is drawn for, so that it is the same under every policy.

There is no shared sequence: the draw for (seed, task, attempt, what) is a hash of these words.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct

#: A draw is a whole number below this.
ONE = 2**60
#: Rates are whole millionths.
MILLION = 10**6


#: What is drawn for one attempt, each from its own place of one hash.
DURATION, INPUT, OUTPUT, CACHE_READ, CACHE_WRITE, ENDING, PART, _REST = range(8)
_PLACES = Struct(">8Q").unpack


def draw(seed: int, *key: object) -> int:
    """A whole number from 0 to `ONE` - 1, each as likely; the same words give the same number."""
    text = "\0".join(map(str, (seed, *key)))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 4


def draws(seed: int, task: str, attempt: int) -> tuple[int, ...]:
    """The draws for one attempt, by the places above."""
    hashed = blake2b(f"{seed}\0{task}\0{attempt}".encode()).digest()
    a, b, c, d, e, f, g, h = _PLACES(hashed)
    return (a >> 4, b >> 4, c >> 4, d >> 4, e >> 4, f >> 4, g >> 4, h >> 4)


def below(number: int, drawn: int) -> int:
    """A whole number from 0 to `number` - 1."""
    return number * drawn // ONE


def happens(millionths: int, drawn: int) -> bool:
    """Whether something happens that does in so many of a million cases."""
    return drawn * MILLION < millionths * ONE


def which(millionths: Sequence[int], drawn: int) -> int | None:
    """Which of several cases comes true, each with its rate; None: none of them."""
    left = drawn * MILLION
    for number, rate in enumerate(millionths):
        left -= rate * ONE
        if left < 0:
            return number
    return None
