"""Rates: how often work has arrived by hour of the week, and arrivals that go on like that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fairlane.model.instant import HOUR, Instant, Micros
from fairlane.model.record import dataclass
from fairlane.model.task import Task
from fairlane.simulation.draws import below, draw
from fairlane.simulation.quantiles import Exponential
from fairlane.simulation.world import Arrival
from fairlane.simulation.worlds.hours import WEEK, Span, paced, week_of
from fairlane.simulation.worlds.records import record_of

#: The ids of tasks that arrive so begin with this.
ARRIVED = "arrival-"
#: No more of the past is repeated than this.
SPAN_MAX: Micros = 8 * WEEK


@dataclass(frozen=True, slots=True)
class Rates:
    """How often what arrived, by hour of the week; nothing that named other tasks is repeated."""

    span: Micros  # how long was recorded
    by_hour: Mapping[int, tuple[Mapping[str, object], ...]]  # fields of what arrived in each

    def arrivals(self, seed: int, begin: Instant, end: Instant) -> Iterator[Arrival]:
        """At random, with the recorded rates."""
        if not self.by_hour:
            return
        by_week = self.span >= WEEK
        gaps = Exponential(self.span * HOUR // WEEK if by_week else self.span)
        every_one = tuple(record for hour in sorted(self.by_hour) for record in self.by_hour[hour])
        open_spans = self._hours(begin, end) if by_week else [Span(begin, end, len(every_one))]
        moments = paced(open_spans, lambda number: gaps.at(draw(seed, "arrival", number, "gap")))
        for number, at in enumerate(moments, start=1):
            alike = self.by_hour[_hour_of(at)] if by_week else every_one
            record = alike[below(len(alike), draw(seed, "arrival", number, "which"))]
            yield Arrival(at, ({**record, "id": f"{ARRIVED}{number}"},))

    def _hours(self, begin: Instant, end: Instant) -> Iterator[Span]:
        """Hours with as many arrivals as were recorded in each of them."""
        for week in range(week_of(begin), end, WEEK):
            for hour in sorted(self.by_hour):
                opens = week + hour * HOUR
                if opens + HOUR > begin and opens < end:
                    pace = len(self.by_hour[hour])
                    yield Span(max(begin, opens), min(end, opens + HOUR), pace)


def rates_of(tasks: Iterable[Task], now: Instant) -> Rates:
    """The rates at which these have arrived."""
    recent = [task for task in tasks if now - SPAN_MAX <= task.created_at < now]
    since = min((task.created_at for task in recent), default=now)
    by_hour: dict[int, list[Mapping[str, object]]] = {}
    for task in sorted(recent, key=lambda task: task.seq):
        record = record_of(task, ())
        again = {key: value for key, value in record.items() if key not in ("id", "not_before")}
        by_hour.setdefault(_hour_of(task.created_at), []).append(again)
    return Rates(now - since, {hour: tuple(by_hour[hour]) for hour in sorted(by_hour)})


def _hour_of(when: Instant) -> int:
    """The hour of the week, from Monday at midnight on."""
    return (when - week_of(when)) // HOUR
