"""Position: the place of a new task among the ready tasks of its project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairlane.model.instant import Instant
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Status, Task
from fairlane.planner.order import Order, Rank
from fairlane.planner.share import Share
from fairlane.policy.policy import Policy
from fairlane.store.base import Reading

#: Places are told up to here: beyond, finding them costs more than adding.
PLACES_MAX = 100


def positions(
    reading: Reading, policy: Policy, now: Instant, tasks: Sequence[Task]
) -> dict[str, int]:
    """The places of these ready tasks, by id, where they are cheap to tell."""
    if not tasks or len(tasks) > PLACES_MAX:
        return {}
    ready: Counter[str] = Counter()
    for tally in reading.tallies():
        if tally.status is Status.QUEUED and not tally.wait:
            ready[tally.project] += tally.count
    projects = {task.project for task in tasks if ready[task.project] <= PLACES_MAX}
    found: dict[str, int] = {}
    for project in sorted(projects):
        mine = [task.id for task in tasks if task.project == project]
        if ready[project] == 1:
            found[mine[0]] = 1
        else:
            ranked = _ranked(reading, policy, now, project)
            found |= {name: ranked[name] for name in mine if name in ranked}
    return found


def _ranked(reading: Reading, policy: Policy, now: Instant, project: str) -> dict[str, int]:
    """Every ready task of a project with its place."""
    age_from = policy.score.age_from
    order = Order(policy, now, Share(Snapshot(), policy, [], frozenset()))
    ranks: list[tuple[Rank, str]] = []
    for head in reading.lanes(age_from, 1):
        if head.key.project != project:
            continue
        lane = head if head.count == 1 else reading.lane(head.key, age_from, head.count)
        entries = lane.in_order(age_from) if lane else ()
        ranks += [(order.rank(head.key, entry), entry.task) for entry in entries]
    return {task: place for place, (_, task) in enumerate(sorted(ranks), 1)}
