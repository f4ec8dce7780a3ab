"""Moments of a workload: times, times since its begin, and hours of the week."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time

from fairlane.model import values
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import DAY, HOUR, MINUTE, Instant, Micros
from fairlane.model.record import dataclass
from fairlane.simulation.worlds.hours import DAYS, FAR, Hours, hours_of

_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)")
#: Most breaks of a day, and parts of a week that are written one by one.
_PARTS_MAX = 50


@dataclass(frozen=True, slots=True)
class Calendar:
    """What times of a workload are written against."""

    begin: Instant
    hours: Mapping[str, Hours]  # by name

    def moment(self, value: object) -> Instant:
        """A time with a zone, or a length since the begin: `1d9h`."""
        try:
            at = self.begin + values.duration(value)
        except Invalid:
            try:
                at = values.moment(value)
            except Invalid as error:
                raise Invalid(error.message, f"{error.hint} Or since the begin, as 1d9h.") from None
        if at < self.begin:
            raise Invalid("a time before the begin", "Give a time of the workload.")
        return at

    def open(self, value: object) -> Hours:
        """The name of a table [hours.NAME], or such a table itself."""
        if not isinstance(value, str):
            return read_hours(value)
        if value not in self.hours:
            hint = did_you_mean(value, self.hours) or f"Write a table [hours.{value}]."
            raise Invalid(f"no hours are called {value!r}", hint)
        return self.hours[value]


def begin(value: object) -> Instant:
    """The first instant of a workload."""
    at = values.moment(value)
    if not 0 <= at < FAR:
        raise values.wrong(
            "a time that can be simulated", value, "Write it as 2026-01-05T00:00:00Z."
        )
    return at


def read_hours(value: object) -> Hours:
    """A table with `days`, `from`, `until`, `breaks`; or a list of such tables."""
    tables = values.entries(value, _PARTS_MAX) if isinstance(value, list) else [value]
    parts: list[tuple[Micros, Micros]] = []
    for table in tables:
        parts += _open(table)
    hours = hours_of(parts, ())
    if not hours.open:
        raise Invalid("hours in which nothing is open", "Open something for a while.")
    return hours


def _open(table: object) -> tuple[tuple[Micros, Micros], ...]:
    """One table: on these days from one time until another, without the breaks."""
    given = values.read_all(_HOURS, table)
    opens, closes = given.get("from", 0), given.get("until", DAY)
    closes += 0 if closes > opens else DAY  # over midnight
    days = [DAY * DAYS.index(day) for day in given.get("days", DAYS)]
    breaks = [
        (day + begin + shift, day + end + shift)
        for begin, end in given.get("breaks", ())
        for shift in (0 if begin >= opens else DAY,)
        for day in days
    ]
    return hours_of(((day + opens, day + closes) for day in days), breaks).open


def _clock(value: object) -> Micros:
    """A time of the day: `09:30`."""
    if isinstance(value, time):
        return value.hour * HOUR + value.minute * MINUTE
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    length = int(found[1]) * HOUR + int(found[2]) * MINUTE if found else DAY + 1
    if length > DAY:
        raise values.wrong("a time of the day", value, 'Write it as "09:30".')
    return length


def _break(value: object) -> tuple[Micros, Micros]:
    ends = values.entries(value, 2)
    if len(ends) != 2:
        raise values.wrong("a break", value, 'Write it as ["12:00", "13:00"].')
    begin, end = _clock(ends[0]), _clock(ends[1])
    return begin, end if end > begin else end + DAY


_HOURS: Mapping[str, values.Reader[object]] = {
    "days": values.some_of(DAYS, ordered=False),
    "from": _clock,
    "until": _clock,
    "breaks": lambda value: tuple(_break(one) for one in values.entries(value, _PARTS_MAX)),
}
