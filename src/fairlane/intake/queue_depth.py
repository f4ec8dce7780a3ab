"""How deep the queue is: backpressure, and the place of new tasks among the ready ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairlane.model.instant import Instant
from fairlane.model.project import WorkerRow
from fairlane.model.record import dataclass, field
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Status, Task
from fairlane.planner.order import Order, Rank, Share
from fairlane.policy.policy import Policy
from fairlane.store.base import Reading

#: Beyond this many tasks, finding places costs more than adding.
PLACES_MAX = 100
_IN_FLIGHT = (Status.LEASED, Status.RUNNING)


@dataclass(slots=True)
class Pressure:
    """The queue as one call finds it, and as it grows with each task that is added."""

    soft: int | None
    hard: int | None
    room: int | None  # that is free now; None: no limit
    by_kind: Counter[str] = field(default_factory=Counter)  # queued tasks of every sort

    @property
    def depth(self) -> int:
        """Queued tasks of every sort, less the room that is free now."""
        return 0 if self.room is None else max(0, self.by_kind.total() - self.room)

    def left(self, limit: int | None) -> int | None:
        """How many more may enter until it is as deep as this; None: any number."""
        if limit is None or self.room is None:
            return None
        return max(0, limit + self.room - self.by_kind.total())

    def enter(self, kind: str) -> str:
        """One more; the warning that it deserves, if any."""
        self.by_kind[kind] += 1
        return self.warning()

    def warning(self) -> str:
        """What is said from the soft limit on: the depth, and the depth by kind."""
        if self.soft is None or self.depth < self.soft:
            return ""
        return f"the queue is {self.depth} deep (soft limit {self.soft}): {self.told()}"

    def too_deep(self) -> str:
        """Why everything is deferred, if it is."""
        if self.hard is None or self.depth <= self.hard:
            return ""
        return f"the queue would be {self.depth} deep (hard limit {self.hard}): {self.told()}"

    def full(self) -> str:
        """Why no more may enter."""
        return f"the queue is full: hard limit {self.hard}"

    def told(self) -> str:
        """The depth by kind, in words."""
        return ", ".join(f"{kind} {count}" for kind, count in sorted(self.by_kind.items()))


def measure(reading: Reading, policy: Policy, slots: int, now: Instant) -> Pressure | None:
    """What the queue weighs now; None: nothing limits it."""
    soft, hard = policy.backpressure_limits()
    if soft is None and hard is None:
        return None
    tallies = reading.tallies()
    queued: Counter[str] = Counter()
    for tally in tallies:
        if tally.status is Status.QUEUED:
            queued[tally.kind] += tally.count
    in_flight = sum(tally.count for tally in tallies if tally.status in _IN_FLIGHT)
    cap = policy.caps.get("all")
    free = _free_slots(reading, policy, slots, in_flight, now)
    if cap is not None:
        free = cap - in_flight if free is None else min(free, cap - in_flight)
    return Pressure(soft, hard, None if free is None else max(0, free), queued)


def _free_slots(
    reading: Reading, policy: Policy, slots: int, in_flight: int, now: Instant
) -> int | None:
    """Free slots of the workers that live; with none, of this machine's, as planning assumes."""
    live = [
        host for host in reading.table(WorkerRow).values() if now - host.seen_at < policy.lease.ttl
    ]
    if not live:
        return slots - in_flight
    if any(host.slots is None for host in live):
        return None
    taken = Counter(task.lease.worker for task in reading.in_flight() if task.lease)
    return sum(max(0, (host.slots or 0) - taken[host.name]) for host in live)


def positions(
    reading: Reading, policy: Policy, now: Instant, tasks: Sequence[Task]
) -> dict[str, int]:
    """The places of these ready tasks, by id, where they are cheap to find."""
    if not tasks or len(tasks) > PLACES_MAX:
        return {}
    ready: Counter[str] = Counter()
    for tally in reading.tallies():
        if tally.status is Status.QUEUED and not tally.wait:
            ready[tally.project] += tally.count
    projects = {task.project for task in tasks if ready[task.project] <= PLACES_MAX}
    places: dict[str, int] = {}
    for project in sorted(projects):
        mine = [task.id for task in tasks if task.project == project]
        if ready[project] == 1:
            places[mine[0]] = 1
        else:
            ranked = _ranked(reading, policy, now, project)
            places |= {name: ranked[name] for name in mine if name in ranked}
    return places


def _ranked(reading: Reading, policy: Policy, now: Instant, project: str) -> dict[str, int]:
    """Every ready task of a project with its place."""
    age_from = policy.score.age_from
    order = Order(policy, now, Share(Snapshot(), policy, [], frozenset()))
    ranks: list[tuple[Rank, str]] = []
    for head in reading.lanes(age_from, 1):
        if head.key.project != project:
            continue
        (lane,) = [head] if head.count == 1 else reading.lanes(age_from, head.count, [head.key])
        entries = lane.in_order(age_from)
        ranks += [(order.rank(head.key, entry), entry.task) for entry in entries]
    return {task: place for place, (_, task) in enumerate(sorted(ranks), 1)}
