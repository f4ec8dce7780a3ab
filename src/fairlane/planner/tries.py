"""Tries: rounds under changes, each played only as far as it shows whether one task starts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from fairlane.model.instant import Instant
from fairlane.model.plan import Hold
from fairlane.model.snapshot import Snapshot, Waiting
from fairlane.model.task import LaneKey, shape_of
from fairlane.planner import changes, readiness
from fairlane.planner.changes import RAISE_MAX, Change, World
from fairlane.planner.conclude import batch_hold
from fairlane.planner.lanes import (
    LaneCursor,
    WindowUsedUp,
    heaps_of,
    offers_of,
    play,
    short_of,
    take_all,
)
from fairlane.planner.order import Rank
from fairlane.planner.round import Round

#: How many pairs are tried.
FIRSTS_MAX = 8


def holds_of(
    round: Round, subject: Waiting, ahead: tuple[str, ...]
) -> tuple[list[Hold], list[Hold]]:
    """What the task itself waits for, and that with everything that holds its lane."""
    lane = round.rules.of_lane(subject.lane, shape_of(subject.lane))
    waits = list(readiness.waits(subject, round.policy, round.now))
    holds = waits + round.all_holds(lane)
    if not holds or round.batch_left == 0:
        holds.append(batch_hold(round) if round.batch_left == 0 else _behind(ahead))
    return waits, holds


def _behind(ahead: tuple[str, ...]) -> Hold:
    return Hold("order", "behind", "others of its lane start first", None, ahead)


class Tries:
    """Plans again under changes, and keeps those that start the task."""

    def __init__(
        self,
        world: World,
        subject: Waiting,
        round: Round,
        holds: list[Hold],
        parent: Tries | None = None,
    ) -> None:
        self._world, self._subject, self._round, self._holds = world, subject, round, holds
        #: The ranks of the heads of lanes as of a time: no change is to the order.
        self._ranks: dict[Instant, dict[str, Rank]] = parent._ranks if parent else {}
        self._lane_of: dict[str, LaneKey] = parent._lane_of if parent else _lanes_of_tasks(world[0])
        self._lane = round.rules.of_lane(subject.lane, shape_of(subject.lane))

    def smallest(self) -> list[Change]:
        """Each single change that starts it; where there is none, the first pair that does."""
        if found(self._world[0], self._subject.entry.task) is None:
            return []  # none brings it into reach
        return list(self.singles()) or list(islice(self._pairs(), 1))

    def singles(self) -> Iterator[Change]:
        """Each single change that starts it."""
        yield from (change for change in self._events(self._holds) if self._starts(change))
        yield from self._raised()

    def _pairs(self) -> Iterator[Change]:
        """Pairs that start it: for each change, what else it takes in the world after it."""
        for first in islice(self.firsts(), FIRSTS_MAX):
            try:
                world = first.to(self._world)
                round = Round(*world)
                play(round)
            except WindowUsedUp:
                continue
            subject = found(world[0], self._subject.entry.task) or self._subject
            _, holds = holds_of(round, subject, ())
            for second in islice(Tries(world, subject, round, holds, self).singles(), 1):
                yield changes.both(first, second)

    def firsts(self) -> Iterator[Change]:
        """One change for each way in which each hold can end."""
        fewer = [hold._replace(holders=hold.holders[:1]) for hold in self._holds]
        yield from self._events(fewer)
        for limit in changes.of_limits(self._lane, self._round):
            yield limit.raised_to(limit.base + limit.step)

    def _events(self, holds: list[Hold]) -> Iterator[Change]:
        yield from changes.of_time_and_tasks(self._subject, holds, self._world[2], self._lane_of)
        yield from changes.of_pauses(self._lane, self._round)

    def _raised(self) -> Iterator[Change]:
        """Limits raised just as far as it takes, found by doubling and then halving.

        The task counts under the limit itself. So it starts before the limit is reached, or not
        at all, and what the highest one does not help no lower one does.
        """
        for make, base, step in changes.of_limits(self._lane, self._round):
            if not self._starts(make(base + RAISE_MAX * step)):
                continue
            enough, short = 1, 0
            while enough < RAISE_MAX and not self._starts(make(base + enough * step)):
                short, enough = enough, enough * 2
            while enough - short > 1:
                middle = (enough + short) // 2
                if self._starts(make(base + middle * step)):
                    enough = middle
                else:
                    short = middle
            yield make(base + enough * step)

    def _starts(self, change: Change) -> bool:
        try:
            return self.picks(Round(*change.to(self._world)))
        except WindowUsedUp:
            return False

    def picks(self, round: Round) -> bool:
        """Whether a round picks the task; what it would pick afterwards is left out."""
        task, key = self._subject.entry.task, self._subject.lane
        age_from = round.policy.score.age_from
        if round.is_full() or round.first_hold(round.rules.of_lane(key, shape_of(key))) is not None:
            return False  # a lane that is refused once is refused to the end
        mine = next((lane.in_order(age_from) for lane in round.lanes if lane.key == key), ())
        entry = next((entry for entry in mine if entry.task == task), None)
        if entry is None:  # it waits
            return False
        lines = self._ahead(round, key, round.order.rank(key, entry))
        heaps = heaps_of(lines, round.order)
        picks = take_all(round, offers_of(heaps.values(), round.order), until=task)
        return bool(picks) and picks[-1].task == task and not short_of(lines)

    def _ahead(self, round: Round, key: LaneKey, rank: Rank) -> list[LaneCursor]:
        """The lanes of a round without those that come after a task of this rank in any case."""
        order, rules, age_from = round.order, round.rules, round.policy.score.age_from
        ranks = self._ranks.setdefault(round.now, {})
        lines = []
        for lane in round.lanes:
            head = lane.in_order(age_from)[0]
            its = ranks.get(head.task)
            if its is None:
                its = ranks[head.task] = order.rank(lane.key, head)
            if its <= rank or (order.by_project and lane.key.project != key.project):
                lines.append(LaneCursor(lane, age_from, rules, order, its))
        return lines


def _lanes_of_tasks(snapshot: Snapshot) -> dict[str, LaneKey]:
    """The lane of each ready task that was read."""
    return {
        entry.task: lane.key
        for lane in snapshot.lanes
        for entries in {id(order): order for order in (lane.by_ready, lane.by_created)}.values()
        for entry in entries
    }


def found(snapshot: Snapshot, task: str) -> Waiting | None:
    """A queued task; None: it is beyond what the store has read of its lane."""
    for waiting in snapshot.waiting:
        if waiting.entry.task == task:
            return waiting
    for lane in snapshot.lanes:
        for entry in lane.by_ready:
            if entry.task == task:
                return Waiting(lane.key, entry)
    return None
