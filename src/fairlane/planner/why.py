"""Why: everything that holds a task, its place, and the smallest changes that would start it."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from fairlane.model.errors import NotFound
from fairlane.model.instant import Instant
from fairlane.model.names import SCHEMA
from fairlane.model.plan import Hold, ScoreParts
from fairlane.model.record import dataclass
from fairlane.model.snapshot import Snapshot, Waiting
from fairlane.model.task import Lane, Status, shape_of
from fairlane.planner import changes, readiness
from fairlane.planner.changes import RAISE_MAX, Change, World
from fairlane.planner.conclude import batch_hold
from fairlane.planner.lanes import WindowUsedUp, play
from fairlane.planner.order import Rank
from fairlane.planner.round import Round
from fairlane.policy.policy import Policy

if TYPE_CHECKING:
    from fairlane.model.documents.reports import WhyAnswer

#: Positions are exact up to here; how many tasks ahead are named; how many pairs are tried.
PLACES_MAX = 1000
AHEAD_SHOWN = 10
FIRSTS_MAX = 8


@dataclass(frozen=True, slots=True)
class Why:
    """The answer for one task."""

    task: str
    status: Status
    verdict: str
    holds: tuple[Hold, ...] = ()
    position: int | None = None
    ahead: tuple[str, ...] = ()
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
    position, ahead = _place(round, subject)
    project = subject.lane.project
    share = {"project": project, **round.share.numbers(project)}
    plan = play(round)
    parts = round.order.score(subject.lane, subject.entry)
    task = subject.entry.task
    if any(pick.task == task for pick in plan.picks):
        return Why(task, Status.QUEUED, "starts now", (), position, ahead, parts, share)
    waits, holds = _holds(round, subject, ahead)
    verdict = f"{'waiting' if waits else 'held'}: {holds[0].reason}"
    tries = _Tries((snapshot, policy, now), subject, round, holds)
    return Why(
        task, Status.QUEUED, verdict, tuple(holds), None if waits else position,
        () if waits else ahead, parts, share, tuple(tries.smallest()),
    )  # fmt: skip


def _holds(round: Round, subject: Waiting, ahead: tuple[str, ...]) -> tuple[list[Hold], list[Hold]]:
    """What the task itself waits for, and that with everything that holds its lane."""
    lane = round.rules.of_lane(subject.lane, shape_of(subject.lane))
    waits = list(readiness.waits(subject, round.policy, round.now))
    holds = waits + round.all_holds(lane)
    if not holds or round.batch_left == 0:
        holds.append(batch_hold(round) if round.batch_left == 0 else _behind(ahead))
    return waits, holds


class _Tries:
    """Plans again under changes, and keeps those that start the task."""

    def __init__(self, world: World, subject: Waiting, round: Round, holds: list[Hold]) -> None:
        self._world, self._subject, self._round, self._holds = world, subject, round, holds
        self._lane = round.rules.of_lane(subject.lane, shape_of(subject.lane))

    def smallest(self) -> list[Change]:
        """Each single change that starts it; where there is none, the first pair that does."""
        return list(self.singles()) or list(islice(self._pairs(), 1))

    def singles(self) -> Iterator[Change]:
        """Each single change that starts it."""
        yield from (change for change in self._events(self._holds) if self._starts(change))
        yield from self._raised()

    def _pairs(self) -> Iterator[Change]:
        """Pairs that start it: for each change, what else it takes in the world after it."""
        for first in islice(self._firsts(), FIRSTS_MAX):
            try:
                world = first.to(self._world)
                round = Round(*world)
                play(round)
            except WindowUsedUp:
                continue
            subject = _found(world[0], self._subject.entry.task) or self._subject
            _, holds = _holds(round, subject, ())
            for second in islice(_Tries(world, subject, round, holds).singles(), 1):
                yield changes.both(first, second)

    def _firsts(self) -> Iterator[Change]:
        """One change for each way in which each hold can end."""
        fewer = [hold._replace(holders=hold.holders[:1]) for hold in self._holds]
        yield from self._events(fewer)
        for limit in changes.of_limits(self._lane, self._round):
            yield limit.raised_to(limit.base + limit.step)

    def _events(self, holds: list[Hold]) -> Iterator[Change]:
        yield from changes.of_time_and_tasks(self._subject, holds, self._world[2])
        yield from changes.of_pauses(self._lane, self._round)

    def _raised(self) -> Iterator[Change]:
        """Limits raised just as far as it takes, found by doubling and then halving."""
        for make, base, step in changes.of_limits(self._lane, self._round):
            enough, short = 1, 0
            while enough <= RAISE_MAX and not self._starts(make(base + enough * step)):
                short, enough = enough, enough * 2
            if enough > RAISE_MAX:
                continue
            while enough - short > 1:
                middle = (enough + short) // 2
                if self._starts(make(base + middle * step)):
                    enough = middle
                else:
                    short = middle
            yield make(base + enough * step)

    def _starts(self, change: Change) -> bool:
        try:
            plan = play(Round(*change.to(self._world)))
        except WindowUsedUp:
            return False
        return any(pick.task == self._subject.entry.task for pick in plan.picks)


def _find(snapshot: Snapshot, task: str) -> Waiting:
    subject = _found(snapshot, task)
    if subject is None:
        raise NotFound(f"there is no task {task!r}", "`fairlane list` shows what there is.")
    return subject


def _found(snapshot: Snapshot, task: str) -> Waiting | None:
    """A queued task; None: it is beyond what the store has read of its lane."""
    for waiting in snapshot.waiting:
        if waiting.entry.task == task:
            return waiting
    for lane in snapshot.lanes:
        for entry in lane.by_ready:
            if entry.task == task:
                return Waiting(lane.key, entry)
    return None


def _place(round: Round, subject: Waiting) -> tuple[int | None, tuple[str, ...]]:
    """Its rank among the ready tasks of its project, and the first of those ahead."""
    lanes = [lane for lane in round.lanes if lane.key.project == subject.lane.project]
    ahead: list[str] = []
    for _, task in merge(*(_ranked(round, lane) for lane in lanes)):
        if task is None or len(ahead) >= PLACES_MAX:
            break
        if task == subject.entry.task:
            return len(ahead) + 1, tuple(ahead[:AHEAD_SHOWN])
        ahead.append(task)
    return None, tuple(ahead[:AHEAD_SHOWN])


def _ranked(round: Round, lane: Lane) -> Iterator[tuple[Rank, str | None]]:
    """A lane's tasks with their rank; None where the snapshot holds no more of them."""
    entries = lane.in_order(round.policy.score.age_from)
    for entry in entries:
        yield round.order.rank(lane.key, entry), entry.task
    if len(entries) < lane.count:
        yield round.order.rank(lane.key, entries[-1]), None


def _behind(ahead: tuple[str, ...]) -> Hold:
    return Hold("order", "behind", "others of its lane start first", None, ahead)


def place_of(
    snapshot: Snapshot, policy: Policy, now: Instant, subject: Waiting
) -> tuple[int | None, tuple[str, ...]]:
    """The place of a task alone, for a snapshot that holds more of the queue."""
    return _place(Round(snapshot, policy, now), subject)
