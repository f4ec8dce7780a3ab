"""Order: the policy's keys, most significant first; age and then `seq` end every order."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from fairlane.model.instant import Instant
from fairlane.model.lane import Entry, LaneKey
from fairlane.model.plan import ScoreParts
from fairlane.planner.scoring import age, score
from fairlane.planner.share import Share
from fairlane.policy.policy import Policy

#: Keys that belong to a project and are equal for all its lanes.
PROJECT_KEYS = ("guarantee", "share")
#: Where the values of the other keys stand among those that `Order.rank` lays out.
_PLACES = {"score": (0,), "priority": (1,), "age": (2,), "seq": (3,), "overdue": (4, 5)}
#: The values of a lane's keys in the order of the policy, as many for every lane.
Rank = tuple[int, ...]


class Order:
    """Compares lanes by their heads. Every value is a whole number."""

    def __init__(self, policy: Policy, now: Instant, share: Share) -> None:
        self._now = now
        self._after = policy.overdue.after
        self._created = policy.score.age_from == "created"
        self._score = policy.score
        self._ripe = age.full_since(policy.score, now)
        #: What `_find_terms` has found, by kind, priority, depth and failures.
        self._terms: dict[tuple[Any, ...], tuple[int, int, ScoreParts]] = {}
        places: list[int] = []
        #: Where each key of projects stands in a full rank.
        self._project_keys: list[tuple[int, Callable[[str], Any]]] = []
        for key in (*policy.order, "age", "seq"):
            if key in PROJECT_KEYS:
                value = share.guarantee if key == "guarantee" else share.key
                self._project_keys.append((len(places) + len(self._project_keys), value))
            elif key != "overdue" or self._after is not None:
                places += [place for place in _PLACES[key] if place not in places]
        self._arrange: Callable[[Rank], Rank] = itemgetter(*places)

    @property
    def by_project(self) -> bool:
        """Whether any key belongs to projects."""
        return bool(self._project_keys)

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
        points = ripe if since <= self._ripe else young + age.term(since, self._score, self._now)
        if self._after is None:
            return self._arrange((-points, lane.priority, since, entry.seq))
        late, oldest = (0, since) if self.overdue(entry) else (1, 0)
        return self._arrange((-points, lane.priority, since, entry.seq, late, oldest))

    def full(self, rank: Rank, project: str) -> tuple[Any, ...]:
        """Its place among all projects, as of now."""
        if not self._project_keys:
            return rank
        whole: list[Any] = [*rank]
        for place, value in self._project_keys:
            whole.insert(place, value(project))
        return tuple(whole)

    def score(self, lane: LaneKey, entry: Entry) -> ScoreParts:
        """Its score with its parts."""
        since = entry.created_at if self._created else entry.ready_since
        _, _, parts = self._terms.get(lane[1:5]) or self._find_terms(lane)
        if since <= self._ripe:
            return parts
        gained = age.term(since, self._score, self._now)
        return ScoreParts(parts.kind, gained, parts.depth, parts.retries)

    def _find_terms(self, lane: LaneKey) -> tuple[int, int, ScoreParts]:
        """The score without age, the score with all that age can give, and its parts."""
        parts = score(lane, self._ripe, self._score, self._now)
        found = self._terms[lane[1:5]] = (parts.total - parts.age, parts.total, parts)
        return found
