"""Order: the policy's keys, most significant first, then age and `seq`; and the score."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TypeAlias

from fairlane.model.instant import MINUTE, Instant
from fairlane.model.plan import Clocks, ScoreParts
from fairlane.model.project import Project, charge, clock_after
from fairlane.model.record import NamedTuple
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Entry, LaneKey
from fairlane.policy.policy import Policy, Score

#: After all others: weight 0 starts only when no other project wants the slot.
_LAST = (1, 0)
_EQUAL = (0, 0)


class Flight(NamedTuple):
    """What an attempt in flight means for its project's share."""

    project: str
    estimate: int
    used: int


class Share:
    """What each project has received, as the policy counts it; the smaller the key, the sooner."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, flights: list[Flight], active: frozenset[str]
    ) -> None:
        self._rules = policy.share
        self._projects = snapshot.projects
        #: Whether one project's pick moves the keys of the others.
        self.moves_all = self._rules.mode == "deficit" and not self._rules.frozen
        self.everyone = snapshot.clock
        self.clocks = {
            name: clock_after(self.everyone, _received_before(project, flights))
            if project.clock is None
            else project.clock
            for name, project in snapshot.projects.items()
        }
        self.present = {name: project.present for name, project in snapshot.projects.items()}
        self.starts = {name: project.starts for name, project in snapshot.projects.items()}
        self._weights, self._total, self._received = 0, 0, dict[str, int]()
        if self._rules.mode == "deficit":
            self._sum_up(flights, active)

    def _sum_up(self, flights: list[Flight], active: frozenset[str]) -> None:
        """What everybody has received, and all active projects together."""
        self._received = {name: project.tokens for name, project in self._projects.items()}
        if not self._rules.frozen:
            for flight in flights:
                self._received[flight.project] += max(0, flight.estimate - flight.used)
        self._weights = sum(self._projects[name].weight for name in active)
        self._total = sum(self._received[name] for name in active)

    def arrive(self, present: frozenset[str]) -> None:
        """A project that becomes present catches up by the idle credit at most."""
        for name in self._projects:
            if name not in present:
                self.present[name] = False
                continue
            weight = self._projects[name].weight
            if weight and not self.present[name]:
                floor = self.everyone - charge(self._rules.idle_credit, weight)
                self.clocks[name] = max(self.clocks[name], floor)
            # Weight 0 has no clock to be behind with: given a weight, it arrives like any other.
            self.present[name] = bool(weight)

    def guarantee(self, name: str) -> int:
        """0 for a project with fewer starts (or completions) than it is owed in the window."""
        project = self._projects[name]
        had = self.starts[name]
        if self._rules.guarantee_counts == "completions":
            had = project.completions
        return 0 if project.weight and had < self._rules.guarantee else 1

    def key(self, name: str) -> tuple[int, int]:
        """The project that is furthest behind its share has the smallest key."""
        if self._rules.mode == "none":
            return _EQUAL
        weight = self._projects[name].weight
        if not weight:
            return _LAST
        if self._rules.mode == "virtual-time":
            return (0, self.clocks[name])
        if not self._weights:
            return _EQUAL
        # received/total - weight/weights, multiplied by both sums: whole numbers, same order.
        return (0, self._received[name] * self._weights - weight * (self._total or 1))

    def take(self, name: str, estimate: int) -> None:
        """A pick of this project: its clock moves, and what it is about to use counts."""
        self.starts[name] += 1
        if self._rules.mode == "none":
            return
        weight = self._projects[name].weight
        if self._rules.mode == "virtual-time" and weight:
            behind = [self.clocks[other] for other, present in self.present.items() if present]
            self.everyone = max(self.everyone, min(behind, default=self.everyone))
            self.clocks[name] = clock_after(self.clocks[name], charge(estimate, weight))
        elif self._rules.mode == "deficit" and not self._rules.frozen:
            self._received[name] += estimate
            self._total += estimate

    def numbers(self, name: str) -> dict[str, object]:
        """The numbers that decide, as they are shown."""
        shown: dict[str, object] = {"mode": self._rules.mode}
        shown["weight"] = self._projects[name].weight
        if self._rules.mode == "virtual-time":
            shown |= {"clock": self.clocks[name], "everyone": self.everyone}
        elif self._rules.mode == "deficit":
            received = {"received": self._received[name], "received_by_all": self._total}
            shown |= received | {"weights": self._weights}
        return shown

    def after(self) -> Clocks:
        """The clocks that commit stores."""
        if self._rules.mode != "virtual-time":
            return Clocks(self.everyone, {})
        rows = {name: (self.clocks[name], self.present[name]) for name in self.clocks}
        return Clocks(self.everyone, rows)


def _received_before(project: Project, flights: list[Flight]) -> int:
    """How far a project without a clock is past `V`: what it used, and what is in flight."""
    mine = [flight for flight in flights if flight.project == project.name]
    before = project.tokens - sum(flight.used for flight in mine)
    received = sum(charge(max(own.used, own.estimate), project.weight) for own in mine)
    return charge(before, project.weight) + received


#: Keys that belong to a project and are equal for all its lanes.
PROJECT_KEYS = ("guarantee", "share")
#: The places of the other keys among the values that `Order.rank` computes.
_PLACES = {"score": (0,), "priority": (1,), "age": (2,), "seq": (3,), "overdue": (4, 5)}
#: The values of a lane's keys in the order of the policy, as many for every lane.
Rank: TypeAlias = tuple[int, ...]
#: The value of one key, and those of all keys, of projects too.
Key: TypeAlias = int | tuple[int, int]
Place: TypeAlias = tuple[Key, ...]


class Order:
    """Compares lanes by their heads. Every value is a whole number."""

    def __init__(self, policy: Policy, now: Instant, share: Share) -> None:
        self._after = policy.overdue.after
        self._created = policy.score.age_from == "created"
        self._score = policy.score
        #: What `_find_terms` has found, by kind, priority, depth and failures.
        self._terms: dict[tuple[object, ...], tuple[int, int, ScoreParts]] = {}
        places: list[int] = []
        #: The place of each key of projects in a full rank.
        self._places: list[tuple[int, str]] = []
        for key in (*policy.order, "age", "seq"):
            if key in PROJECT_KEYS:
                self._places.append((len(places) + len(self._places), key))
            elif key != "overdue" or self._after is not None:
                places += [place for place in _PLACES[key] if place not in places]
        self._arrange: Callable[[Rank], Rank] = itemgetter(*places)
        #: Whether any key belongs to projects.
        self.by_project = bool(self._places)
        #: Whether a place changes while time passes and nothing else happens.
        self.by_score, self.by_overdue = 0 in places, 4 in places
        self.move_to(now)
        self.compare_by(share)

    def move_to(self, now: Instant) -> None:
        """From here on it ranks as of this time."""
        self._now, self._ripe = now, full_age_since(self._score, now)

    def compare_by(self, share: Share) -> None:
        """From here on it compares projects by these shares."""
        self._project_keys: list[tuple[int, Callable[[str], Key]]] = [
            (place, share.guarantee if key == "guarantee" else share.key)
            for place, key in self._places
        ]

    def changes_at(self, entry: Entry) -> Instant | None:
        """The first time after now at which its rank may be another; None: never again."""
        since, times = self.since(entry), []
        if self.by_score and since > self._ripe:
            times.append(since + ((self._now - since) // MINUTE + 1) * MINUTE)
        if self.by_overdue and self._after is not None and not self.overdue(entry):
            times.append(since + self._after + 1)
        return min(times, default=None)

    def since(self, entry: Entry) -> Instant:
        """The instant from which its age counts."""
        return entry.created_at if self._created else entry.ready_since

    def overdue(self, entry: Entry) -> bool:
        """Whether it has waited longer than `overdue.after`."""
        return self._after is not None and self._now - self.since(entry) > self._after

    def rank(self, lane: LaneKey, entry: Entry) -> Rank:
        """Its place inside its project; changes only when the lane's head is taken."""
        since = entry.created_at if self._created else entry.ready_since
        young, ripe, _ = self._terms.get(lane[1:5]) or self._find_terms(lane)
        points = ripe if since <= self._ripe else young + age_points(since, self._score, self._now)
        if self._after is None:
            return self._arrange((-points, lane.priority, since, entry.seq))
        late, oldest = (0, since) if self.overdue(entry) else (1, 0)
        return self._arrange((-points, lane.priority, since, entry.seq, late, oldest))

    def full(self, rank: Rank, project: str) -> Place:
        """Its place among all projects, as of now."""
        if not self._project_keys:
            return rank
        whole: list[Key] = [*rank]
        for place, value in self._project_keys:
            whole.insert(place, value(project))
        return tuple(whole)

    def score(self, lane: LaneKey, entry: Entry) -> ScoreParts:
        """Its score with its parts."""
        since = entry.created_at if self._created else entry.ready_since
        _, _, parts = self._terms.get(lane[1:5]) or self._find_terms(lane)
        if since <= self._ripe:
            return parts
        gained = age_points(since, self._score, self._now)
        return ScoreParts(parts.kind, gained, parts.depth, parts.retries)

    def _find_terms(self, lane: LaneKey) -> tuple[int, int, ScoreParts]:
        """The score without age, the score with all that age can give, and its parts."""
        parts = score(lane, self._ripe, self._score, self._now)
        terms = self._terms[lane[1:5]] = (parts.total - parts.age, parts.total, parts)
        return terms


def score(lane: LaneKey, since: Instant, rules: Score, now: Instant) -> ScoreParts:
    """The score of a lane's head with its parts; higher first."""
    kind = rules.kind.get(lane.kind)
    return ScoreParts(
        kind=rules.kind.get("*", 0) if kind is None else kind,
        age=age_points(since, rules, now),
        depth=lane.depth * rules.depth_per_level,  # begun work is finished first
        retries=-min(lane.failures * rules.retry_penalty, rules.retry_penalty_max),
    )


def age_points(since: Instant, rules: Score, now: Instant) -> int:
    """Points for whole minutes of waiting, up to a limit; never negative if a clock is ahead."""
    minutes = (now - since) // MINUTE
    return min(minutes * rules.age_per_minute, rules.age_max) if minutes > 0 else 0


def full_age_since(rules: Score, now: Instant) -> Instant:
    """Tasks that wait since then, or longer, have all the points that age can give."""
    minutes = -(-rules.age_max // rules.age_per_minute) if rules.age_per_minute else 0
    return now - minutes * MINUTE
