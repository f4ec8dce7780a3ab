"""The lane planner: the same answers as `reference`, at a cost of lanes and picks only.

Within a round a gate that has refused a lane never accepts it later, and inside a project the
keys of a lane change only when its own head is taken. So each project keeps its lanes in a heap
and offers the best one, and the offers are compared afresh at every pick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heapreplace
from operator import attrgetter, itemgetter

from fairlane.model.instant import Instant
from fairlane.model.plan import IDS_SHOWN, Pick, Plan
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Entry, Lane, LaneKey
from fairlane.planner.conclude import Left, conclude
from fairlane.planner.order import Order, Place, Rank
from fairlane.planner.round import Round
from fairlane.planner.rules import LaneRules, Rules
from fairlane.policy.policy import Policy


class WindowUsedUp(Exception):
    """The snapshot holds fewer tasks of these lanes than the round takes: read more, plan again."""

    def __init__(self, lanes: frozenset[LaneKey]) -> None:
        super().__init__(f"{len(lanes)} lanes")
        self.lanes = lanes


class LaneCursor:
    """A lane during a round: its tasks and how many of them were taken."""

    __slots__ = ("count", "entries", "head", "key", "rank", "rules", "taken")

    def __init__(
        self, lane: Lane, age_from: str, rules: Rules, order: Order, rank: Rank | None = None
    ) -> None:
        self.key = lane.key
        self.rules = rules.of_lane(lane.key, lane.shape)
        self.entries = lane.in_order(age_from)
        self.count = lane.count
        self.taken = 0
        self.head = self.entries[0]
        self.rank: Rank = order.rank(lane.key, self.head) if rank is None else rank

    def advance(self, order: Order) -> bool:
        """Its head was taken; False: nothing is left, or nothing that was read."""
        self.taken += 1
        if self.taken == len(self.entries):
            return False
        self.head = self.entries[self.taken]
        self.rank = order.rank(self.key, self.head)
        return True

    def left(self) -> Left:
        """What was not taken."""
        rest = self.entries[self.taken : self.taken + IDS_SHOWN]
        return self.rules, self.count - self.taken, tuple(map(_TASK, rest))


#: The id of an entry.
_TASK: Callable[[Entry], str] = itemgetter(0)
#: A project's lanes, best first: rank and line in one tuple, which compares faster than two.
#: Ranks are equally long and no two have the same `seq`, so lines are never compared.
Item = tuple[*tuple[int, ...], LaneCursor]
Heap = list[Item]
#: The projects' heaps, each with the place of its best lane among all, best first.
Offers = list[tuple[Place, Heap]]


def plan(snapshot: Snapshot, policy: Policy, now: Instant) -> Plan:
    """What to start now, decided lane by lane."""
    return play(Round(snapshot, policy, now))


def play(round: Round) -> Plan:
    """Take picks until nothing more can start; the round then shows why the rest cannot."""
    order, age_from = round.order, round.policy.score.age_from
    lines = [LaneCursor(lane, age_from, round.rules, order) for lane in round.lanes]
    picks = take_all(round, offers_of(heaps_of(lines, order).values(), order))
    short = short_of(lines)
    if short:
        raise WindowUsedUp(frozenset(short))
    return conclude(round, picks, left_of(lines, order))


def take_all(round: Round, offers: Offers, until: str | None = None) -> list[Pick]:
    """The picks of a round, best first, or those up to one task; heaps and offers are used up."""
    order = round.order
    picks: list[Pick] = []
    refused: set[LaneRules] = set()
    while offers and not round.is_full():
        heap = offers[0][1]
        line: LaneCursor = heap[0][-1]
        if line.rules in refused or round.first_hold(line.rules) is not None:
            refused.add(line.rules)
            heappop(heap)
            _offer_again(offers, order)
            continue
        picks.append(round.take(line.key, line.rules, line.head))
        if line.head.task == until:
            break
        if line.advance(order):
            item: Item = (*line.rank, line)
            heapreplace(heap, item)
        else:
            heappop(heap)
        _offer_again(offers, order)
        if round.share.moves_all:
            offers = [(_place(heap, order), heap) for _, heap in offers]
            heapify(offers)
    return picks


def short_of(lines: Iterable[LaneCursor]) -> list[LaneKey]:
    """The lanes of which more might have been taken than was read."""
    return [line.key for line in lines if line.taken == len(line.entries) < line.count]


def heaps_of(lines: Iterable[LaneCursor], order: Order) -> dict[str, Heap]:
    """One heap a project; one for all where no key belongs to projects."""
    heaps: dict[str, Heap] = {}
    for line in lines:
        project = line.key.project if order.by_project else ""
        heaps.setdefault(project, []).append((*line.rank, line))
    for heap in heaps.values():
        heapify(heap)
    return heaps


def offers_of(heaps: Iterable[Heap], order: Order) -> Offers:
    """The heaps, none of which is empty, by their best lane."""
    offers = [(_place(heap, order), heap) for heap in heaps]
    heapify(offers)
    return offers


def _offer_again(offers: Offers, order: Order) -> None:
    """The best offer has changed: put it where it now belongs."""
    heap = offers[0][1]
    if not heap:
        heappop(offers)
    elif len(offers) > 1:
        heapreplace(offers, (_place(heap, order), heap))


def _place(heap: Heap, order: Order) -> Place:
    line: LaneCursor = heap[0][-1]
    return order.full(line.rank, line.key.project)


def left_of(lines: Iterable[LaneCursor], order: Order) -> list[Left]:
    """The lanes of which something is left, in the order of their heads."""
    rest = [line for line in lines if line.taken < line.count]
    if order.by_project:
        rest.sort(key=lambda line: order.full(line.rank, line.key.project))
    else:
        rest.sort(key=attrgetter("rank"))
    return [line.left() for line in rest]
