"""Who asks for work, and who is there to do it."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane.engine.context import Context, follows_policy, slot_limit
from fairlane.model.instant import Instant
from fairlane.model.project import Worker, WorkerRow
from fairlane.model.record import changed, dataclass
from fairlane.policy.policy import Policy
from fairlane.settings import host_name
from fairlane.store.base import Reading


@dataclass(frozen=True, slots=True)
class Asker:
    """A worker that asks for work itself: only it gets what is planned, at most `limit`."""

    worker: str
    limit: int | None = None
    executor: str = "none"  # none: it runs the attempts itself, and heartbeats keep them
    host: str | None = None
    direct: bool = False  # started by `add` itself, whatever the caps say
    labels: tuple[str, ...] = ()  # none: those it had

    def row(self, reading: Reading, now: Instant) -> WorkerRow | None:
        """The worker as a round has it; one that runs attempts itself is new at its first."""
        row = reading.table(WorkerRow).get(self.worker)
        if self.executor != "none":
            return row
        row = row or WorkerRow(self.worker)
        return changed(row, host=host_name(), labels=self.labels or row.labels, seen_at=now)


def workers_for(
    context: Context,
    reading: Reading,
    policy: Policy,
    now: Instant,
    busy: Mapping[str | None, int],
    asker: Asker | None,
) -> tuple[Worker, ...]:
    """The workers that a plan is for; `busy`: how many attempts each has."""
    if asker is None:
        rows = list(reading.table(WorkerRow).values())
    else:
        rows = [row for row in [asker.row(reading, now)] if row is not None]
    workers = []
    for row in rows:
        live = now - row.seen_at < policy.lease.ttl
        slots = row.slots
        if follows_policy(context.settings, row):
            slots = slot_limit(context.settings, policy)
        if asker is not None and asker.limit is not None:
            asked = busy.get(row.name, 0) + asker.limit
            slots = asked if slots is None else min(slots, asked)
        workers.append(Worker(row.name, slots, row.labels, live or asker is not None))
    return tuple(workers)


def assumed_worker(context: Context, policy: Policy) -> Worker:
    """Where nobody lives: this machine's worker, as the next daemon would have it."""
    return Worker("local", slot_limit(context.settings, policy), context.settings.worker.labels)
