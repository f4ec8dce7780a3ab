"""Values: what people write for times, lengths and tokens, as exact values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from fairlane.model.instant import Instant, Micros
    from fairlane.service.desk import Desk
    from fairlane.service.ending import Report

#: What every operation gives: what `--json` prints.
Document: TypeAlias = dict[str, Any]
#: Totals of an attempt so far, by counter; a bare number is output.
Used: TypeAlias = Mapping[str, int] | int | None
#: A time, or a length before or after now, as people write it; or an instant.
When: TypeAlias = "str | Instant | None"
#: A length as people write it (a bare number is seconds), or microseconds.
Length: TypeAlias = "str | float | None"


def ago(desk: Desk, since: When) -> Instant | None:
    """A time, or a length before now."""
    if not isinstance(since, str):
        return since
    from fairlane.model.errors import Invalid
    from fairlane.model.instant import parse_duration, parse_instant

    try:
        return desk.now() - parse_duration(since)
    except Invalid:
        pass
    try:
        return parse_instant(since)
    except Invalid as error:
        hint = "Write a length as 12h or 7d, a time as 2026-01-30T12:00:00Z."
        raise Invalid(f"since: {error.message}", hint) from None


def moment(when: When) -> Instant | None:
    if not isinstance(when, str):
        return when
    from fairlane.model.instant import parse_instant

    return parse_instant(when)


def length(given: Length) -> Micros | None:
    """`30s`; a bare number is seconds."""
    if given is None:
        return None
    from fairlane.model.errors import Invalid
    from fairlane.model.instant import SECOND, parse_duration

    if isinstance(given, str):
        return parse_duration(given)
    if not 0 <= given <= 10**9:
        raise Invalid(f"not a length: {given}", "Write it as 30s or 5m, or in seconds.")
    return round(given * SECOND)


def told(
    tokens: Used,
    cost: float | None,
    detail: str = "",
    result: dict[str, Any] | None = None,
    retry_after: Micros | None = None,
    resets_at: Instant | None = None,
) -> Report:
    """What a holder says, as it is booked; a bare number of tokens is output."""
    from fairlane.model.amounts import DOLLARS_MAX, TOKENS_MAX
    from fairlane.model.errors import Invalid, did_you_mean
    from fairlane.service.ending import Report
    from fairlane.service.reports.documents import COUNTERS

    given = {"output": tokens} if isinstance(tokens, int) else tokens
    for name in given or {}:
        if name not in COUNTERS:
            raise Invalid(f"there is no counter {name!r}", did_you_mean(name, COUNTERS))
    counted = None
    if given is not None:
        first, second, third, fourth = (
            int(_within(f"tokens.{name}", given.get(name, 0), TOKENS_MAX)) for name in COUNTERS
        )
        counted = (first, second, third, fourth)
    usd = None if cost is None else round(_within("cost", cost, DOLLARS_MAX) * 1_000_000)
    return Report(counted, usd, detail, result, retry_after, resets_at)


def _within(name: str, value: float, most: int) -> float:
    """A number that one attempt can have used, or it is refused."""
    from fairlane.model.errors import Invalid

    if not 0 <= value <= most:
        raise Invalid(f"{name}: {value} is out of range", f"Give a number from 0 to {most}.")
    return value
