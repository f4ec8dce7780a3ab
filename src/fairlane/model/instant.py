"""Instants and durations: whole microseconds inside, RFC 3339 and `5m` outside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from fairlane.model.errors import Invalid

#: Microseconds since 1970-01-01T00:00:00Z.
Instant: TypeAlias = int
#: A length of time in microseconds.
Micros: TypeAlias = int

SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR
#: Longest duration: a hundred years, so that no sum of instants leaves the calendar.
DURATION_MAX: Micros = 36_500 * DAY

#: Hints of errors: how to write them.
WRITE_DURATION = "Write it as 30s, 5m, 1h30m or 7d."
WRITE_INSTANT = "Write it as 2026-01-30T12:00:00Z."

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The calendar: the years 1 to 9999.
_FIRST, _LAST = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1
_UNITS = {"ms": 1_000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_PART = r"(\d+)(ms|s|m|h|d|w)"
_DURATION = r"(?:\d{1,18}(?:ms|s|m|h|d|w))+"


def instant(when: datetime | Instant) -> Instant:
    """An aware datetime, or an instant already, as an instant."""
    if isinstance(when, int) and not isinstance(when, bool):
        return when
    if not isinstance(when, datetime):
        raise Invalid(f"not a time: {when!r}", "Give an aware datetime.")
    if when.tzinfo is None:
        shown = when.isoformat()
        raise Invalid(f"time without a zone: {shown}", "Add a zone, such as +00:00 or Z.")
    return (when - _EPOCH) // timedelta(microseconds=1)


def checked_instant(when: Instant) -> Instant:
    """The same, unless no calendar has it."""
    if not _FIRST <= when <= _LAST:
        raise Invalid(f"not a time of the calendar: {when!r:.62}", WRITE_INSTANT)
    return when


def to_instants(thing: object, *names: str) -> None:
    """Turn datetimes that a frozen value was given into instants."""
    for name in names:
        value = getattr(thing, name)
        if value is not None and type(value) is not int:
            object.__setattr__(thing, name, instant(value))


def to_datetime(when: Instant) -> datetime:
    """An instant as an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=when)


def parse_instant(text: str) -> Instant:
    """An RFC 3339 time; one without a zone is refused: two machines would read it differently."""
    try:
        return checked_instant(instant(datetime.fromisoformat(text)))
    except ValueError as error:
        raise Invalid(f"not a time: {text!r:.62}", WRITE_INSTANT) from error


@lru_cache(maxsize=1024)  # one event, one lease, one row: the same instant several times over
def show_instant(when: Instant) -> str:
    """RFC 3339 in UTC, with a fraction only where there is one."""
    moment = to_datetime(when).replace(tzinfo=None)
    if not moment.microsecond:
        return moment.isoformat() + "Z"
    unit = "milliseconds" if moment.microsecond % 1000 == 0 else "microseconds"
    return moment.isoformat(timespec=unit) + "Z"


def show_milliseconds(when: Instant) -> str:
    """RFC 3339 in UTC with milliseconds, as JavaScript writes it."""
    return to_datetime(when).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_duration(text: str) -> Micros:
    """A length such as `90s`, `5m`, `1h30m`, `7d`."""
    if not re.fullmatch(_DURATION, text):
        raise Invalid(f"not a duration: {text!r:.62}", WRITE_DURATION)
    length = sum(int(count) * _UNITS[unit] for count, unit in re.findall(_PART, text))
    if length > DURATION_MAX:
        raise Invalid(f"not a duration: {text!r}", f"Use at most {DURATION_MAX // DAY}d.")
    return length


def show_duration(length: Micros) -> str:
    """One exact way to write a length: `90s` is `1m30s`; days only where there are whole ones."""
    if length % 1000:
        return f"{length / SECOND:g}s"
    parts = []
    days = length >= 2 * DAY and length % DAY == 0
    for unit in ("d", "h", "m", "s", "ms") if days else ("h", "m", "s", "ms"):
        count, length = divmod(length, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def minute_of(when: Instant) -> Instant:
    """The first instant of its minute: the bucket in which usage is booked."""
    return when - when % MINUTE
