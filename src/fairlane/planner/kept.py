"""Kept: what planning reads and what did not change since the last round."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

from fairlane.model.instant import Instant
from fairlane.model.project import History, Project
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Lane, LaneKey, shape_of
from fairlane.planner.flying import Flying, Moved, Proposed
from fairlane.planner.lanes import Heap, Item, LaneCursor
from fairlane.planner.order import Order, Share
from fairlane.planner.round import Ledger, Workers
from fairlane.planner.rules import LaneRules, Rules
from fairlane.policy.policy import Policy

#: What planning knows of a project besides its numbers: when it changes, everything is read anew.
_Static: TypeAlias = tuple[object, ...]


class KeptLane(LaneCursor):
    """A lane from round to round."""

    __slots__ = ("changes_at", "item", "lane")

    def __init__(self, lane: Lane, age_from: str, rules: Rules, order: Order) -> None:
        super().__init__(lane, age_from, rules, order)
        self.lane = lane
        self.changes_at = order.changes_at(self.head)
        self.item: Item = (*self.rank, self)

    def begin(self, order: Order) -> None:
        """Nothing is taken; its place is as of now."""
        self.taken = 0
        self.head = self.entries[0]
        self.rank = order.rank(self.key, self.head)
        self.changes_at = order.changes_at(self.head)
        self.item = (*self.rank, self)

    def __lt__(self, other: KeptLane) -> bool:
        """Among equal ranks: a task that moved heads two lanes until its old one has followed."""
        return str(self.key) < str(other.key)


class Kept:
    """Everything of a snapshot that later rounds need in another form; `follow` keeps it so."""

    def __init__(self, snapshot: Snapshot, policy: Policy, now: Instant) -> None:
        self.policy, self.now, self.snapshot = policy, now, snapshot
        self.rules = Rules(snapshot, policy, now)
        self.ledger = Ledger()
        self._employ(snapshot)
        self.order = Order(policy, now, Share(snapshot, policy, [], frozenset()))
        self.flying = Flying(self.rules_of, self.ledger, policy, bool(self.rules.budgets))
        self.lanes: dict[LaneKey, KeptLane] = {}
        #: Ready tasks by their rules, and all together of rules that only the room can hold.
        self.ready: dict[LaneRules, int] = {}
        self.bound: dict[LaneRules, int] = {}  # those that something else can hold
        self.unbound = 0
        self.proposed: list[Proposed] = []
        self.shelves: dict[str, Heap] = {}  # the lanes of a project (or all), best first
        self.locked: dict[LaneKey, KeptLane] = {}  # the lanes that take locks or workspaces
        self.preferred: dict[tuple[str, str], int] = {}  # ready tasks that prefer a workspace
        self._static = {name: _static(project) for name, project in snapshot.projects.items()}
        self._histories = snapshot.history
        self._resting: frozenset[str] = frozenset()
        self._bound: dict[LaneRules, bool] = {}
        self._free_projects: frozenset[str] | None = None
        self._lined_up: tuple[Lane, ...] = ()
        self._taken_from: set[LaneKey] = set()
        self._of_history: dict[tuple[str, str, str | None], list[LaneRules]] = {}
        self._timers: list[tuple[Instant, int, KeptLane]] = []
        self._numbers = count()
        self.flying.follow({flight.task: flight for flight in snapshot.in_flight}, [])

    def fits(self, snapshot: Snapshot, policy: Policy) -> bool:
        """Whether nothing has changed that everything else rests on."""
        known = self.snapshot
        return (
            (policy is self.policy or policy == self.policy)
            and (snapshot.groups is known.groups or snapshot.groups == known.groups)
            and snapshot.paused == known.paused
            and snapshot.agents == known.agents
            and self._same_projects(snapshot.projects)
        )

    def follow(
        self, snapshot: Snapshot, lanes: tuple[Lane, ...], now: Instant, moved: Moved | None
    ) -> None:
        """Take over what has changed; `lanes` are those with ready tasks."""
        if moved is None and snapshot.in_flight is not self.snapshot.in_flight:
            moved = self.flying.find_moved(snapshot.in_flight)
        if self.rules.budgets:
            self.rules.spend(snapshot, now)
        if self.proposed or moved:
            self._taken_from |= {proposed.place[0] for proposed in self.proposed}
            self.flying.follow(moved or {}, self.proposed)
            self.proposed = []
        known = self.snapshot
        if (snapshot.workers, snapshot.assumed) != (known.workers, known.assumed):
            self._employ(snapshot)
        if snapshot.history is not self._histories and snapshot.history != self._histories:
            self._learn(snapshot.history)
        self.snapshot = snapshot
        self.order.move_to(now)
        self._age(now)
        self._line_up(lanes)

    def suffices(self, now: Instant) -> bool:
        """Whether nothing has expired, nothing has a workspace, and nothing may be reserved."""
        if any(at <= now for at in self.flying.first_expiry()):
            return False
        if self.policy.overdue.after is None:
            return True
        return not any(self.order.overdue(line.head) for line in self.locked.values())

    def rules_of(self, key: LaneKey) -> LaneRules:
        """The rules of a lane; known ones follow the history."""
        shape = shape_of(key)
        if self.rules.knows(shape):
            return self.rules.of(shape)
        rules = self.rules.of(shape)
        place = (rules.project, rules.kind, rules.agent)
        self._of_history.setdefault(place, []).append(rules)
        return rules

    # Which lanes nothing but the room holds

    def rest(self, resting: frozenset[str]) -> None:
        """These pools rest now: other lanes are bound by that."""
        if resting == self._resting:
            return
        self._resting, self._free_projects = resting, None
        self._bound.clear()
        for rules in self.rules.known():
            rules.checks = ()
        self.unbound = sum(n for rules, n in self.ready.items() if not self.is_bound(rules))
        self.bound = {rules: n for rules, n in self.ready.items() if self.is_bound(rules)}

    def is_bound(self, rules: LaneRules) -> bool:
        """Whether anything can hold a lane but the room: cap `all`, free slots, the batch."""
        bound = self._bound.get(rules)
        if bound is None:
            bound = self._bound[rules] = self._find_bound(rules)
        return bound

    def free_projects(self) -> frozenset[str]:
        """The projects with a ready task that only the room can hold."""
        if self._free_projects is None:
            names = [rules.project for rules in self.ready if rules not in self.bound]
            self._free_projects = frozenset(names)
        return self._free_projects

    def _find_bound(self, rules: LaneRules) -> bool:
        known = self.snapshot.agents
        return (
            bool(rules.locks or rules.labels)
            or self._takes_workspace(rules)
            or any(scope in self.rules.budgets for scope in rules.scopes)
            or rules.pool in self._resting
            or any(scope != "all" for scope, _ in rules.caps)
            or any(scope in self.rules.pauses for scope in rules.scopes)
            or (known is not None and rules.agent is not None and rules.agent not in known)
        )

    def _takes_workspace(self, rules: LaneRules) -> bool:
        named = self.snapshot.projects[rules.project].workspaces
        return rules.workspace is not None or named is not None

    # Projects

    def _same_projects(self, projects: Mapping[str, Project]) -> bool:
        known = self.snapshot.projects
        if projects is known:
            return True
        if projects.keys() != known.keys():
            return False
        return all(
            project is known[name] or _static(project) == self._static[name]
            for name, project in projects.items()
        )

    def _employ(self, snapshot: Snapshot) -> None:
        cap = self.policy.caps.get("all")
        self.workers = Workers(snapshot.workers, cap, self.ledger, snapshot.assumed)

    # Lanes

    def _line_up(self, lanes: tuple[Lane, ...]) -> None:
        """Keep the lanes that are there."""
        before, self._lined_up = self._lined_up, lanes
        if len(lanes) == len(before):
            news = [lane for lane, old in zip(lanes, before, strict=True) if lane is not old]
            if all(lane.key in self.lanes for lane in news):  # as many, so the same ones
                for lane in news:
                    self._line_for(lane)
                self._put_back()
                return
        known = {id(line.lane): line for line in self.lanes.values()}
        lines = [known.get(id(lane)) or self._line_for(lane) for lane in lanes]
        if len(lines) != len(self.lanes):
            kept = {line.key for line in lines}
            for line in [line for line in self.lanes.values() if line.key not in kept]:
                self._drop(line)
        self._put_back()

    def _put_back(self) -> None:
        """What was taken of lanes was only proposed."""
        for key in self._taken_from:
            line = self.lanes.get(key)
            if line is not None and line.taken:
                self._line_for(line.lane)
        self._taken_from = set()

    def _line_for(self, lane: Lane) -> KeptLane:
        line = self.lanes.get(lane.key)
        if line is None:
            return self._new_line(lane)
        if lane.count != line.count:
            self._count(line.rules, lane.count - line.count)
        first = line.entries[0]
        line.lane, line.count = lane, lane.count
        line.entries = lane.in_order(self.policy.score.age_from)
        if line.taken or line.entries[0] != first:
            self._unshelve(line)
            line.begin(self.order)
            self._shelve(line)
        return line

    def _new_line(self, lane: Lane) -> KeptLane:
        self.rules_of(lane.key)
        line = KeptLane(lane, self.policy.score.age_from, self.rules, self.order)
        self.lanes[lane.key] = line
        if line.rules.locks or self._takes_workspace(line.rules):
            self.locked[lane.key] = line
        self._count(line.rules, line.count)
        self._shelve(line)
        return line

    def _drop(self, line: KeptLane) -> None:
        self._unshelve(line)
        del self.lanes[line.key]
        self.locked.pop(line.key, None)
        self._count(line.rules, -line.count)

    def _count(self, rules: LaneRules, more: int) -> None:
        if rules.workspace is not None:
            place = (rules.project, rules.workspace)
            self.preferred[place] = self.preferred.get(place, 0) + more
        before = self.ready.get(rules, 0)
        after = before + more
        if not before or not after:
            self._free_projects = None
        counts = (self.ready, self.bound) if self.is_bound(rules) else (self.ready,)
        for table in counts:
            if after:
                table[rules] = after
            else:
                table.pop(rules, None)
        if len(counts) == 1:
            self.unbound += more

    def _shelve(self, line: KeptLane) -> None:
        shelf = self.shelves.setdefault(self._shelf_of(line), [])
        insort(shelf, line.item)
        if line.changes_at is not None:
            heappush(self._timers, (line.changes_at, next(self._numbers), line))

    def _unshelve(self, line: KeptLane) -> None:
        name = self._shelf_of(line)
        shelf = self.shelves[name]
        place: int = bisect_left(shelf, line.item)
        del shelf[place]
        if not shelf:
            del self.shelves[name]

    def _shelf_of(self, line: KeptLane) -> str:
        return line.key.project if self.order.by_project else ""

    def _age(self, now: Instant) -> None:
        """Ranks follow the time."""
        due: Iterable[KeptLane] = ()
        if now < self.now:
            due = self.lanes.values()
        elif self._timers and self._timers[0][0] <= now:
            due = self._due(now)
        self.now = now
        for line in due:
            self._unshelve(line)
            line.begin(self.order)
            self._shelve(line)

    def _due(self, now: Instant) -> list[KeptLane]:
        due: dict[LaneKey, KeptLane] = {}
        while self._timers and self._timers[0][0] <= now:
            at, _, line = heappop(self._timers)
            if line.changes_at == at and self.lanes.get(line.key) is line:
                due[line.key] = line
        return list(due.values())

    # What finished attempts tell

    def _learn(self, rows: tuple[History, ...]) -> None:
        known = self.rules.history
        history = {(row.project, row.kind, row.agent): row for row in rows}
        places = [place for place, row in history.items() if known.get(place) != row]
        places += [place for place in known if place not in history]
        for place in places:
            for rules in self._of_history.get(place, ()):
                rules.history = history.get(place)
        self.flying.reserve_again(places)
        self._histories, self.rules.history = rows, history


def _static(project: Project) -> _Static:
    return project.max_in_flight, project.status, project.workspaces, project.budgets
