"""From what a program's final record says to an outcome: one place for all programs.

Only the error field of a final record is matched, never what the agent wrote. A wall-clock time in
it is read in its printed zone, else the local one, and means the next time the clock shows it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from fairlane.agents.contract import Verdict
from fairlane.agents.records import count, last_line, one_line
from fairlane.lifecycle.backoff import WAIT_MAX
from fairlane.model.instant import DAY, HOUR, MINUTE, SECOND, Instant, Micros, instant, to_datetime
from fairlane.model.task import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from fairlane.agents.contract import Facts
    from fairlane.model.instant import Instant


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


def epoch_instant(value: object, now: Instant) -> Instant | None:
    """Epoch seconds, or milliseconds where they are too many for seconds, as the end of a wait."""
    seconds = count(value, EPOCH_MAX * 1_000)
    if seconds > EPOCH_MAX:
        seconds //= 1_000
    return min(seconds * SECOND, now + WAIT_MAX) if 0 < seconds <= EPOCH_MAX else None


def reset_in(text: str, now: Instant) -> Instant | None:
    """When the limit that a text speaks of ends; None: it does not say."""
    text = text[:TEXT_MAX].replace("\u202f", " ").replace("\u00a0", " ")
    epoch = _EPOCH.search(text)
    if epoch:
        return epoch_instant(int(epoch[1]), now)
    try:
        when = _dated(text) or _clock(text, now)
    except (ValueError, OverflowError):
        return None
    return None if when is None else min(when, now + WAIT_MAX)


def wait_in(text: str) -> Micros | None:
    """How long a text asks to wait, as in `try again in 1m2.5s`; None: it does not say."""
    match = _LENGTH.search(text[:TEXT_MAX].lower())
    if not match:
        return None
    parts = _PART.findall(match[1])
    length = sum(round(float(number) * _UNITS[unit]) for number, unit in parts)
    return min(length, WAIT_MAX) if parts else None


def _dated(text: str) -> Instant | None:
    match = _DATED.search(text)
    if not match:
        return None
    year, month, day, hour, minute = (int(match[at]) for at in range(1, 6))
    naive = datetime(year, month, day, hour, minute)
    return instant(naive.replace(tzinfo=UTC) if match[6] else naive.astimezone())


def _clock(text: str, now: Instant) -> Instant | None:
    match = _CLOCK.search(text)
    if not match or not (match["half"] or match["minute"]):
        return None
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"][0] in "pP" else 0)
    zone = _zone(match["zone"])
    here = to_datetime(now).astimezone(zone).replace(tzinfo=None)
    at = here.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
    for naive in _candidates(at, match):
        when = instant(naive.replace(tzinfo=zone) if zone else naive.astimezone())
        if when > now - JUST_PASSED:
            return when
    return None


def _candidates(at: datetime, match: re.Match[str]) -> Iterator[datetime]:
    """The times that the words can mean, earliest first."""
    if match["month"]:
        month, day = _MONTHS.index(match["month"].lower()) + 1, int(match["day"])
        years = [int(match["year"])] if match["year"] else [at.year, at.year + 1]
        yield from (at.replace(year=year, month=month, day=day) for year in years)
    elif match["weekday"]:
        ahead = (_DAYS.index(match["weekday"].lower()) - at.weekday()) % 7
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


NOT_LOGGED_IN = "not logged in"
OUT_OF_CREDITS = "out of credits"

#: How much of an error is looked at: its beginning says what it is.
_ERROR_MAX = 2_000
_LOGGED_OUT = re.compile(
    r"^(?:failed to authenticate|not logged in|invalid api key|please run /login)"
    r"|last status: 401\b|unexpected status 401\b|\boauth token (?:has )?(?:expired|revoked)"
    r"|^your (?:access )?token (?:could not be refreshed|has expired)|\bplease log (?:out|in)\b",
    re.IGNORECASE,
)
_NO_CREDITS = re.compile(
    r"\bout of credits\b|\bcredit balance is too low\b|\bspend cap\b|\bcredits_required\b"
    r"|\binsufficient_quota\b|\bquota exceeded\. check your plan\b|\binsufficient.{0,20}balance\b",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"you.ve (?:hit|reached) your\b.{0,60}\blimit|\busage limit (?:reached|exceeded)\b"
    r"|^(?:session|weekly|spend) limit reached\b|\bexhausted your (?:daily )?quota\b",
    re.IGNORECASE,
)
_THROTTLE = re.compile(
    r"\b(?:last|unexpected) status:? (?:429|529)\b|\b(?:429|529)\b.{0,40}"
    r"\b(?:too many|rate|overloaded|rejected|resource)|rejected \((?:429|529)\)"
    r"|\brate limit reached\b|\brepeated 529\b|\btemporarily limiting requests\b"
    r"|\bselected model is at capacity\b|\bserver is overloaded\b|\bRESOURCE_EXHAUSTED\b",
    re.IGNORECASE,
)


def unfinished(
    exit_code: int | None, signal: int | None, stderr_tail: str, begun: bool, **facts: Unpack[Facts]
) -> Verdict:
    """The verdict on a program that should have printed a final record and did not.

    One that began and stopped short was interrupted, whatever its exit code says. One that
    printed no record and gave up by itself never started: a wrong option, a broken installation.
    """
    if not begun and exit_code == 0 and not signal:
        return Verdict(Outcome.SUCCEEDED, **facts)
    why = last_line(stderr_tail)
    if begun and exit_code == 0 and not signal:
        why = why or "it ended without a final record"
    detail = one_line(": ".join(part for part in (ended(exit_code, signal), why) if part))
    never = not begun and not signal and exit_code is not None
    return Verdict(Outcome.LAUNCH_FAILED if never else Outcome.FAILED, detail, **facts)


def by_error(error: str, now: Instant, **facts: Unpack[Facts]) -> Verdict:
    """The verdict on a final record with an error, by the text of that error."""
    text, detail = error[:_ERROR_MAX].replace("’", "'"), one_line(error) or "it failed"
    if _LOGGED_OUT.search(text):
        return Verdict(Outcome.ENVIRONMENT, detail, pause=NOT_LOGGED_IN, **facts)
    if _NO_CREDITS.search(text):
        return Verdict(Outcome.ENVIRONMENT, detail, pause=OUT_OF_CREDITS, **facts)
    if _WINDOW.search(text):
        resets_at, wait = reset_in(text, now), wait_in(text)
        if resets_at is None and wait is not None:
            resets_at = now + wait
        return Verdict(Outcome.THROTTLED, detail, resets_at=resets_at, **facts)
    if _THROTTLE.search(text):
        return Verdict(Outcome.THROTTLED, detail, retry_after=wait_in(text), **facts)
    return Verdict(Outcome.FAILED, detail, **facts)


def ended(exit_code: int | None, signal: int | None) -> str:
    """How a process ended, in two words."""
    if signal:
        return f"signal {signal}"
    return "no exit code" if exit_code is None else f"exit {exit_code}"
