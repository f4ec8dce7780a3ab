"""What people type for times, lengths, counts and money, as exact values."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from fairlane.model.amounts import DOLLARS_MAX, TOKENS_MAX
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import SECOND, parse_duration, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlane.model.instant import Instant, Micros

#: The counters of tokens, in the order in which they are kept.
COUNTERS = ("input", "output", "cache_read", "cache_write")
#: Tokens by counter.
Counters: TypeAlias = dict[str, int]
#: A prompt, a result or a note beyond this size is a mistake.
FILE_BYTES_MAX = 1_000_000
#: So is a list of tasks or a scenario beyond this one.
LIST_BYTES_MAX = 100_000_000
_SECONDS = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"


def token_count(text: str) -> int:
    """A whole number of tokens: 1000, 1_000."""
    from fairlane.model.values import digits, whole

    return whole(0, TOKENS_MAX)(digits(text))


def tokens(text: str) -> Counters:
    """`input=N,output=N,cache_read=N,cache_write=N`; a bare number is output."""
    counters = dict.fromkeys(COUNTERS, 0)
    if "=" not in text:
        return counters | {"output": token_count(text)}
    named: set[str] = set()
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        if name not in counters:
            raise Invalid(f"no counter {name!r}", did_you_mean(name, COUNTERS))
        if name in named:
            raise Invalid(f"{name} is given twice", "Give each counter once.")
        named.add(name)
        counters[name] = token_count(number)
    return counters


def dollars(text: str) -> int:
    """Dollars such as 0.42, as whole micro-dollars."""
    from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

    from fairlane.model import values

    amount: object = text
    with suppress(InvalidOperation):
        number = Decimal(text.strip().removeprefix("$"))
        rounded = number.quantize(Decimal("0.000001"), ROUND_HALF_UP)
        amount = rounded if 0 <= rounded <= DOLLARS_MAX else text  # an error shows what was typed
    return values.dollars(DOLLARS_MAX)(amount)


def used(tokens: Counters | None, micros: int | None) -> dict[str, object]:
    """Tokens and cost as operations take them."""
    return {"tokens": tokens, "cost": None if micros is None else micros / 10**6}


def seconds(text: str) -> Micros:
    """A length: 90 and 1.5 are seconds, 5m is five minutes."""
    if re.fullmatch(_SECONDS, text):
        whole, _, part = text.partition(".")
        return int(whole) * SECOND + int(part.ljust(6, "0"))
    return parse_duration(text)


def moment(text: str, now: Instant) -> Instant:
    """A time (RFC 3339), or a length from now on: 2h."""
    try:
        return now + parse_duration(text)
    except Invalid:
        pass
    try:
        return parse_instant(text)
    except Invalid as error:
        hint = "Write a time as 2026-01-30T12:00:00Z, or 2h for in two hours."
        raise Invalid(error.message, hint) from None


def pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`k=v` for each, by name."""
    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise Invalid(f"{option}: not NAME=VALUE: {text!r}", f"Write {option} name=value.")
        values[name] = value
    return values


def argv(option: str, text: str) -> list[str]:
    """A command line, split as a shell would; no shell ever runs it."""
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        hint = f'Close every quote: {option} "make test".'
        raise Invalid(f"{option}: {str(error).lower()}: {text!r}", hint) from None
    if not words:
        raise Invalid(f"{option}: no command in {text!r}", f'Write {option} "make test".')
    return words


def read_text(name: str, what: str = "file", most: int = FILE_BYTES_MAX) -> str:
    """The text of a file; `-` is standard input."""
    from fairlane.careful_files import read_file

    try:
        data = read_input(most) if name == "-" else read_file(name, most)
        return data.decode("utf-8-sig")
    except OSError as error:
        raise Invalid(f"{name}: cannot be read: {error.strerror}", f"Give a {what}.") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{name}: not UTF-8 text", f"Give a {what} as text.") from error


def read_input(most: int = LIST_BYTES_MAX) -> bytes:
    """Standard input until its end."""
    from fairlane.careful_files import read_stream

    try:
        return read_stream(sys.stdin.buffer, most)
    except OSError as error:
        message = f"standard input: cannot be read: {error.strerror}"
        raise Invalid(message, "Give less, or a file.") from error
