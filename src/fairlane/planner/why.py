"""Why: everything that holds a task, its place, and the smallest changes that would start it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import merge
from typing import TYPE_CHECKING

from fairlane.model.errors import NotFound
from fairlane.model.instant import Instant
from fairlane.model.names import SCHEMA
from fairlane.model.plan import Hold, ScoreParts
from fairlane.model.record import NamedTuple, dataclass
from fairlane.model.snapshot import Snapshot, Waiting
from fairlane.model.task import Lane, LaneKey, Status
from fairlane.planner.changes import Change
from fairlane.planner.lanes import play
from fairlane.planner.order import Rank
from fairlane.planner.round import Round
from fairlane.planner.tries import Tries, found, holds_of
from fairlane.policy.policy import Policy

if TYPE_CHECKING:
    from fairlane.model.documents.reports import WhyAnswer

#: Positions are exact up to here; how many tasks ahead are named.
PLACES_MAX = 1000
AHEAD_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Why:
    """The answer for one task."""

    task: str
    status: Status
    verdict: str
    holds: tuple[Hold, ...] = ()
    position: int | None = None
    ahead: tuple[str, ...] = ()
    short_of: frozenset[LaneKey] = frozenset()  # more of these must be read to know its place
    score: ScoreParts | None = None
    share: dict[str, object] | None = None
    would_start_if: tuple[Change, ...] = ()

    def document(self) -> WhyAnswer:
        """As every interface shows it."""
        parts = self.score
        return {
            "schema": SCHEMA,
            "task": self.task,
            "status": str(self.status),
            "verdict": self.verdict,
            "holds": [hold.document() for hold in self.holds],
            "position": self.position,
            "ahead": list(self.ahead),
            "score": {"total": parts.total, **parts.document()} if parts else None,
            "share": self.share,
            "would_start_if": [change.document() for change in self.would_start_if],
            "starts": None,
        }


def why(snapshot: Snapshot, policy: Policy, now: Instant, task: str) -> Why:
    """Why this task does not run, or that it does."""
    for flight in snapshot.in_flight:
        if flight.task == task:
            on = f" on {flight.lease.worker}" if flight.lease.worker else ""
            return Why(task, flight.status, f"{flight.status}{on}")
    if task in snapshot.ended:
        status = snapshot.ended[task]
        tail = "; only `retry` puts it back" if status is Status.PARKED else ""
        return Why(task, status, f"{status}{tail}")
    return explain(snapshot, policy, now, _find(snapshot, task))


def explain(snapshot: Snapshot, policy: Policy, now: Instant, subject: Waiting) -> Why:
    """Why this queued task does not start now."""
    round = Round(snapshot, policy, now)
    position, ahead, short = place_of(round, subject)
    project = subject.lane.project
    share = {"project": project, **round.share.numbers(project)}
    plan = play(round)
    parts = round.order.score(subject.lane, subject.entry)
    task = subject.entry.task
    if any(pick.task == task for pick in plan.picks):
        return Why(task, Status.QUEUED, "starts now", (), position, ahead, short, parts, share)
    waits, holds = holds_of(round, subject, ahead)
    if waits:  # it has no place yet
        position, ahead, short = None, (), frozenset()
    verdict = f"{'waiting' if waits else 'held'}: {holds[0].reason}"
    tries = Tries((snapshot, policy, now), subject, round, holds)
    return Why(
        task, Status.QUEUED, verdict, tuple(holds), position, ahead, short, parts, share,
        tuple(tries.smallest()),
    )  # fmt: skip


def _find(snapshot: Snapshot, task: str) -> Waiting:
    subject = found(snapshot, task)
    if subject is None:
        raise NotFound(f"there is no task {task!r}", "`fairlane list` shows what there is.")
    return subject


class Place(NamedTuple):
    """A task among the ready tasks of its project."""

    position: int | None  # None: further back than is counted, or than was read
    ahead: tuple[str, ...]  # the first of them
    short_of: frozenset[LaneKey]  # the lanes of which more must be read to know it


def place_of(round: Round, subject: Waiting) -> Place:
    """Its rank, and the first of those ahead."""
    lanes = [lane for lane in round.lanes if lane.key.project == subject.lane.project]
    ahead: list[str] = []
    position, used = None, Counter[LaneKey]()
    for _, lane, task in merge(*(_ranked(round, lane) for lane in lanes)):
        if len(ahead) >= PLACES_MAX:
            break
        if task is None:  # and others are soon used up, too
            short = {each.key for each in lanes if 2 * used[each.key] >= _read(round, each)}
            return Place(None, tuple(ahead[:AHEAD_SHOWN]), frozenset(short))
        if task == subject.entry.task:
            position = len(ahead) + 1
            break
        ahead.append(task)
        used[lane] += 1
    return Place(position, tuple(ahead[:AHEAD_SHOWN]), frozenset())


def _read(round: Round, lane: Lane) -> int:
    return len(lane.in_order(round.policy.score.age_from))


def _ranked(round: Round, lane: Lane) -> Iterator[tuple[Rank, LaneKey, str | None]]:
    """A lane's tasks with their rank; None where the snapshot holds no more of them."""
    entries = lane.in_order(round.policy.score.age_from)
    for entry in entries:
        yield round.order.rank(lane.key, entry), lane.key, entry.task
    if len(entries) < lane.count:
        yield round.order.rank(lane.key, entries[-1]), lane.key, None
