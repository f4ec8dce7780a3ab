"""When a provider takes work again: instants and lengths in the texts that programs print.

A wall-clock time is read in the zone that is printed with it, else in the local one, and always
means the next time the clock shows it. No wait is longer than a week and a day.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from fairlane.agents.records import count
from fairlane.lifecycle.cooldown import WAIT_MAX
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, Instant, Micros, instant, to_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A time of day that passed so lately is the one that is meant, not tomorrow's.
JUST_PASSED: Micros = 15 * MINUTE
TEXT_MAX = 2_000
#: More seconds than this are milliseconds.
EPOCH_MAX = 10**11

_EPOCH = re.compile(r"\|\s*(\d{10})(?!\d)")
_DATED = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::\d\d)?(?:\.\d+)?\s*(Z|UTC)?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(
    rf"""(?:resets?(?:\sat)?|try\sagain\sat)\s+
    (?:(?P<weekday>{"|".join(_DAYS)})[a-z]*\.?,?\s+(?:at\s+)?)?
    (?:(?P<month>{"|".join(_MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+
       (?:(?P<year>\d{{4}}),?\s+)?(?:at\s+)?)?
    (?P<hour>\d{{1,2}})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m)?\b\.?
    (?:\s*\((?P<zone>[A-Za-z][\w+/-]{{1,40}})\))?""",
    re.IGNORECASE | re.VERBOSE,
)
_LENGTH = re.compile(
    r"(?:try again|retry|retry after|wait)(?: in| after)?:? ((?:[\d.]+ ?[a-z]+,? ?)+)"
)
_PART = re.compile(r"(\d+(?:\.\d+)?) ?(ms|milli|s|m|h|d)")
_UNITS = {"ms": 1_000, "milli": 1_000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}


def epoch_instant(value: object) -> Instant | None:
    """Epoch seconds, or milliseconds where they are too many for seconds, as an instant."""
    seconds = count(value, EPOCH_MAX * 1_000)
    if seconds > EPOCH_MAX:
        seconds //= 1_000
    return seconds * SECOND if 0 < seconds <= EPOCH_MAX else None


def bounded(when: Instant | None, now: Instant) -> Instant | None:
    """A time that a wait may have: never further than the longest window."""
    return None if when is None else min(when, now + WAIT_MAX)


def reset_in(text: str, now: Instant) -> Instant | None:
    """When the limit that a text speaks of ends; None: it does not say."""
    text = text[:TEXT_MAX].replace("\u202f", " ").replace("\u00a0", " ")
    epoch = _EPOCH.search(text)
    if epoch:
        return bounded(epoch_instant(int(epoch[1])), now)
    try:
        return bounded(_dated(text) or _clock(text, now), now)
    except (ValueError, OverflowError):
        return None


def wait_in(text: str) -> Micros | None:
    """How long a text asks to wait, as in `try again in 1m2.5s`; None: it does not say."""
    found = _LENGTH.search(text[:TEXT_MAX].lower())
    if not found:
        return None
    parts = _PART.findall(found[1])
    length = sum(round(float(number) * _UNITS[unit]) for number, unit in parts)
    return min(length, WAIT_MAX) if parts else None


def _dated(text: str) -> Instant | None:
    found = _DATED.search(text)
    if not found:
        return None
    year, month, day, hour, minute = (int(found[at]) for at in range(1, 6))
    naive = datetime(year, month, day, hour, minute)
    return instant(naive.replace(tzinfo=UTC) if found[6] else naive.astimezone())


def _clock(text: str, now: Instant) -> Instant | None:
    found = _CLOCK.search(text)
    if not found or not (found["half"] or found["minute"]):
        return None
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"][0] in "pP" else 0)
    zone = _zone(found["zone"])
    here = to_datetime(now).astimezone(zone).replace(tzinfo=None)
    at = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    for naive in _candidates(at, found):
        when = instant(naive.replace(tzinfo=zone) if zone else naive.astimezone())
        if when > now - JUST_PASSED:
            return when
    return None


def _candidates(at: datetime, found: re.Match[str]) -> Iterator[datetime]:
    """The times that the words can mean, earliest first."""
    if found["month"]:
        month, day = _MONTHS.index(found["month"].lower()) + 1, int(found["day"])
        years = [int(found["year"])] if found["year"] else [at.year, at.year + 1]
        yield from (at.replace(year=year, month=month, day=day) for year in years)
    elif found["weekday"]:
        ahead = (_DAYS.index(found["weekday"].lower()) - at.weekday()) % 7
        yield from (at + timedelta(days=ahead + week) for week in (0, 7))
    else:
        yield from (at + timedelta(days=day) for day in (-1, 0, 1))


def _zone(name: str | None) -> tzinfo | None:
    """The zone of a name; None: the local one."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return UTC if name.upper() in ("UTC", "GMT") else None
