"""Compacting: what is older than an instant shrinks to what is kept for ever."""

from __future__ import annotations

from itertools import chain

from fairlane.model.instant import Instant
from fairlane.model.task import Status
from fairlane.store.base import Placed
from fairlane.store.memory.attempts import Attempts
from fairlane.store.memory.rows import COMPACTED, Row, compacted, named_by
from fairlane.store.memory.usage import Usage


class Memory(Attempts, Usage):
    """All that is kept; one object that reads and, in a transaction, writes."""

    def compact(self, before: Instant) -> dict[str, int]:
        """Shrinks what ended before; how much there was of it."""
        old = self._ended_before(before)
        for row in old:
            task = row.placed.task
            for attempt in self.attempts(task.id):
                self._change_attempt(attempt, None)
            self._change(row, Row(Placed(compacted(task))))
        self._compact_usage(before)
        return {
            "tasks": len(old),
            "events": self._compact_log(before),
            "decisions": self._compact_decisions(before),
        }

    def problems(self) -> list[str]:
        """Where what is derived does not agree with what it is derived from."""
        anew = Memory()
        anew._projects = self._projects
        anew.begin()
        anew.insert([row.placed for row in self._rows.values()])
        anew.put_attempts(list(self._attempts.values()))
        anew.commit()
        told, again = _told(self), _told(anew)
        found = [
            f"{what} do not agree with the tasks" for what in told if told[what] != again[what]
        ]
        flying = {row.placed.task.id for row in self._rows.values() if row.shelf[0].in_flight}
        if flying != set(self._open):
            found.append("tasks in flight without exactly one open attempt")
        return found

    def _ended_before(self, before: Instant) -> list[Row]:
        """Finished tasks of that time which no unfinished one names."""
        unfinished = chain.from_iterable(
            seqs for (status, _), seqs in self._shelves.items() if not status.final
        )
        rows = (self._rows[self._ids[seq]] for seq in unfinished)
        named = set(chain.from_iterable(named_by(row.placed.task) for row in rows))
        found = []
        for seq in self._on_shelves((Status.DONE, Status.CANCELED), 0):
            row = self._rows[self._ids[seq]]
            task = row.placed.task
            if task.ended_at is None or task.ended_at >= before:
                continue
            if task.id not in named and task.meta != COMPACTED:
                found.append(row)
        return found


def _told(memory: Memory) -> dict[str, object]:
    """Everything that follows from tasks and attempts."""
    size = len(memory._rows)
    return {
        "lanes by ready_since": {lane.key: lane for lane in memory.lanes("ready", size)},
        "lanes by created_at": {lane.key: lane for lane in memory.lanes("created", size)},
        "tallies": memory.tallies(),
        "wait counts": memory.wait_counts(),
        "due": list(memory._due),
        "dependents": memory._dependents,
        "attempts": (list(memory._ended), memory._open, memory._fences),
    }
