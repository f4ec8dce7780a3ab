"""Compacting: what is old shrinks, in parts that change few rows each."""

from __future__ import annotations

from functools import partial

from fairlane.model.instant import DAY, Instant
from fairlane.model.project import PolicyText
from fairlane.store.base import WHOLE, Compacted, Place
from fairlane.store.parts import LOOKS, Stage, Step, compact_part
from fairlane.store.sql.rows import parse
from fairlane.store.sql.writing import SqlWriting

_EVER: Instant = -(1 << 62)


class SqlTransaction(SqlWriting):
    """A transaction that also compacts."""

    def compact(self, before: Instant, place: Place = (), limit: int = WHOLE) -> Compacted:
        stages: dict[str, Stage] = {
            "tasks": partial(self._compact_tasks, before),
            "events": partial(self._compact_events, before),
            "decisions": partial(self._compact_decisions, before),
            "usage": partial(self._compact_usage, before - before % DAY),
            "rest": self._compact_rest,
        }
        return compact_part(stages, place, limit)

    def _compact_tasks(self, before: Instant, after: Place, limit: int) -> Step:
        """Finished tasks which no unfinished one names, in the order in which they ended."""
        looked = self._rows("compact_which", before, *(after or (_EVER, 0)), limit)
        ended = [row for row in looked if not row[5]]
        needs = [
            (needed, seq)
            for seq, _, _, parent, said, _ in ended if said
            for needed in parse(said) if needed != parent
        ]  # fmt: skip
        self._do_many("compact_attempts", [(row[1],) for row in ended])
        self._do_many("drop_need", needs)
        self._do_many("compact_task", [(row[0],) for row in ended])
        return Step(len(ended), (looked[-1][2], looked[-1][0]) if len(looked) == limit else None)

    def _compact_events(self, before: Instant, after: Place, limit: int) -> Step:
        (begin,) = after or (0,)
        looked = self._rows("times_of_events", begin, LOOKS * limit)
        old = [number for number, at in looked if at < before][:limit]
        if old:
            self._do("compact_events", begin, old[-1], before)
        if len(old) == limit:
            return Step(limit, (old[-1],))
        return Step(len(old), (looked[-1][0],) if len(looked) == LOOKS * limit else None)

    def _compact_decisions(self, before: Instant, after: Place, limit: int) -> Step:
        """Runs of the same base, the oldest first, up to one that has a younger decision."""
        count = 0
        while (first := self._row("first_decision")) is not None:
            number, base = first
            if count >= limit:
                return Step(count, (number - 1,))
            following = self._row("next_base", number, base)
            end = WHOLE if following is None else following[0]
            dropped = self._count("compact_decisions", end, before)
            if not dropped:
                break
            count += dropped
        return Step(count)

    def _compact_usage(self, midnight: Instant, after: Place, limit: int) -> Step:
        """The minutes of days that are over become one row a day; each scope counts for a row."""
        count, (scope, begin) = 0, after or ("", midnight)
        while count < limit:
            if begin >= midnight:
                following = self._row("next_scope", scope)
                if following is None or following[0] is None:
                    return Step(count)
                scope, begin = following[0], _EVER
            rows = self._rows("minutes_of_scope", scope, begin, midnight, limit - count)
            if rows:
                within = (scope, begin, rows[-1][0])
                self._news.scopes.add(scope)
                self._do("compact_usage", *within)
                self._do("compact_minutes", *within)
            begin = rows[-1][0] if len(rows) == limit - count else midnight
            count += max(len(rows), 1)
        return Step(count, (scope, begin))

    def _compact_rest(self, _: Place, limit: int) -> Step:
        """Empty lanes, whose ids may be given again; and policies."""
        self.flush()
        lanes = self._count("compact_lanes", limit)
        if lanes:
            self._memo.drop("lane ids")
            self._lane_ids = {}
            self._news.anything = True
        if lanes == limit:
            return Step(lanes, ())
        if self._row("other_policies") is not None:
            self._do("compact_policies")
            self._memo.drop(PolicyText.__name__)
            self._news.anything = True
        return Step(lanes)

    def _count(self, name: str, *values: object) -> int:
        """Do this; how many rows it changed."""
        self._wrote = True
        return self._connection.execute(self._statements[name], values).rowcount
