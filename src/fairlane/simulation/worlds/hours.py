"""Hours: times of the week (UTC), and moments that keep a pace while something is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fairlane.model.instant import DAY, Instant, Micros
from fairlane.model.record import dataclass

WEEK: Micros = 7 * DAY
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: What ends otherwise looks no further than this: the year 9000.
FAR: Instant = 7030 * 365 * DAY
#: The first Monday of the calendar of instants.
_MONDAY: Instant = 4 * DAY


class Span(NamedTuple):
    """A time with a pace: in a second of it, `pace` seconds pass for what is counted."""

    begin: Instant
    end: Instant
    pace: int = 1


@dataclass(frozen=True, slots=True)
class Hours:
    """When something is open: parts of a week, from Monday at midnight on."""

    open: tuple[tuple[Micros, Micros], ...]  # by time, none touches the next

    @property
    def length(self) -> Micros:
        """How much of a week is open."""
        return sum(end - begin for begin, end in self.open)


#: Never closed.
ALWAYS = Hours(((0, WEEK),))


def hours_of(
    parts: Iterable[tuple[Micros, Micros]], without: Iterable[tuple[Micros, Micros]]
) -> Hours:
    """The parts of a week, each of which may reach into the next week, without the breaks."""
    inside = _joined(_wrapped(parts))
    for gap_begin, gap_end in _joined(_wrapped(without)):
        rest = [(begin, min(end, gap_begin)) for begin, end in inside]
        rest += [(max(begin, gap_end), end) for begin, end in inside]
        inside = _joined(part for part in rest if part[0] < part[1])
    return Hours(tuple(inside))


def _wrapped(parts: Iterable[tuple[Micros, Micros]]) -> Iterator[tuple[Micros, Micros]]:
    for begin, end in parts:
        yield begin, min(end, WEEK)
        if end > WEEK:
            yield 0, end - WEEK


def _joined(parts: Iterable[tuple[Micros, Micros]]) -> list[tuple[Micros, Micros]]:
    """By time; those that overlap or touch as one."""
    joined: list[tuple[Micros, Micros]] = []
    for begin, end in sorted(parts):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def week_of(when: Instant) -> Instant:
    """The Monday at midnight before."""
    return when - (when - _MONDAY) % WEEK


def spans(hours: Hours, begin: Instant, end: Instant) -> Iterator[Span]:
    """When something is open between two instants; what is open over midnight is one span."""
    if hours == ALWAYS:
        if begin < end:
            yield Span(begin, end)
        return
    last: Span | None = None
    for week in range(week_of(begin), end, WEEK):
        for opens, closes in hours.open:
            span = Span(max(begin, week + opens), min(end, week + closes))
            if span.begin >= span.end:
                continue
            if last is not None and last.end == span.begin:
                span = Span(last.begin, span.end)
            elif last is not None:
                yield last
            last = span
    if last is not None:
        yield last


def paced(
    spans: Iterable[Span], gap: Callable[[int], Micros], at_once: bool = False
) -> Iterator[Instant]:
    """Moments with gaps of time in which something is open; the gaps are numbered from 1.

    `at_once`: the first moment is the first of all, without a gap before it.
    """
    number = 0 if at_once else 1
    left = gap(number) if number else 0
    for begin, end, pace in spans:
        now = begin
        while left < (end - now) * pace:
            now += -(-left // pace)
            yield now
            number += 1
            left = gap(number)
        left -= (end - now) * pace
