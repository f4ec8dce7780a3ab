"""Compacting: what is old shrinks, in parts that change few rows each."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import chain, groupby
from operator import attrgetter

from fairlane.model.instant import DAY, Instant
from fairlane.model.task import Status
from fairlane.store.base import WHOLE, Compacted, Place, Placed
from fairlane.store.memory.attempts import Attempts
from fairlane.store.memory.rows import COMPACTED, Row, compacted, named_by
from fairlane.store.memory.usage import Usage
from fairlane.store.parts import LOOKS, Stage, Step, compact_part

_EVER: Instant = -(1 << 62)


class Compaction(Attempts, Usage):
    """A transaction that also compacts."""

    def compact(self, before: Instant, place: Place = (), limit: int = WHOLE) -> Compacted:
        stages: dict[str, Stage] = {
            "tasks": partial(self._compact_tasks, before),
            "events": partial(self._compact_events, before),
            "decisions": partial(self._compact_decisions, before),
            "usage": partial(self._compact_usage, before // DAY * DAY),
            "rest": self._compact_rest,
        }
        return compact_part(stages, place, limit)

    def _compact_tasks(self, before: Instant, after: Place, limit: int) -> Step:
        looked = self._ended_before(before, after)[:limit]
        old = self._unnamed(looked)
        for row in old:
            task = row.placed.task
            for attempt in self.attempts(task.id):
                self._change_attempt(attempt, None)
            self._change(row, Row(Placed(compacted(task))))
        return Step(len(old), _ended(looked[-1]) if len(looked) == limit else None)

    def _ended_before(self, before: Instant, after: Place) -> list[Row]:
        """Finished tasks of that time, in the order in which they ended."""
        seqs = self._on_shelves((Status.DONE, Status.CANCELED), 0)
        rows = [self._rows[self._ids[seq]] for seq in seqs]
        whole = [row for row in rows if row.placed.task.meta != COMPACTED]
        old = [row for row in whole if after < _ended(row) < (before,)]
        return sorted(old, key=_ended)

    def _unnamed(self, rows: list[Row]) -> list[Row]:
        """Those which no unfinished task names."""
        unfinished = chain.from_iterable(
            seqs for (status, _), seqs in self._shelves.items() if not status.final
        )
        naming = (self._rows[self._ids[seq]] for seq in unfinished)
        named = set(chain.from_iterable(named_by(row.placed.task) for row in naming))
        return [row for row in rows if row.placed.task.id not in named]

    def _compact_events(self, before: Instant, after: Place, limit: int) -> Step:
        begin = bisect_right(self._events, after[0] if after else 0, key=attrgetter("number"))
        looked = self._events[begin : begin + LOOKS * limit]
        old = [event.number for event in looked if event.at < before][:limit]
        if old:
            self._drop_events(set(old))
        if len(old) == limit:
            return Step(limit, (old[-1],))
        return Step(len(old), (looked[-1].number,) if len(looked) == LOOKS * limit else None)

    def _compact_decisions(self, before: Instant, after: Place, limit: int) -> Step:
        """Runs of the same base, the oldest first, up to one that has a younger decision."""
        count = 0
        while self._decisions:
            rows = [self._decisions[number] for number in sorted(self._decisions)]
            if count >= limit:
                return Step(count, (rows[0].number - 1,))
            _, grouped = next(groupby(rows, attrgetter("base")))
            run = list(grouped)
            if any(row.at >= before for row in run):
                break
            for row in run:
                self._set(self._decisions, row.number, None)
            count += len(run)
        return Step(count)

    def _compact_usage(self, midnight: Instant, after: Place, limit: int) -> Step:
        """The minutes of days that are over become one row a day; each scope counts for a row."""
        count, (scope, begin) = 0, after or ("", midnight)
        while count < limit:
            if begin >= midnight:
                at = bisect_right(self._scopes, scope)
                if at == len(self._scopes):
                    return Step(count)
                scope, begin = self._scopes[at], _EVER
            minutes = [row.minute for row in self._accounts[scope].since(begin + 1)]
            old = [each for each in minutes if each < midnight and each % DAY][: limit - count]
            if old:
                self._news.scopes.add(scope)
                self._fold(scope, set(old))
            begin = old[-1] if len(old) == limit - count else midnight
            count += max(len(old), 1)
        return Step(count, (scope, begin))

    def _compact_rest(self, _: Place, __: int) -> Step:
        self._drop_unused_policies()
        return Step(0)


def _ended(row: Row) -> tuple[Instant, int]:
    """When a finished task ended, and its place among those of the same time."""
    task = row.placed.task
    assert task.ended_at is not None
    return task.ended_at, task.seq
