"""Order: the policy's keys, most significant first; age and then `seq` end every order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.model.instant import Instant
from fairlead.model.lane import Entry, LaneKey
from fairlead.planner.scoring import age, fixed_terms
from fairlead.planner.share import Share
from fairlead.policy.policy import Policy

#: Keys that belong to a project and are equal for all its lanes.
PROJECT_KEYS = ("guarantee", "share")
#: One tuple a stretch of lane keys, in the order of the policy.
Rank = tuple[tuple[int, ...], ...]


class Order:
    """Compares lanes by their heads. Every value is a whole number."""

    def __init__(self, policy: Policy, now: Instant, share: Share) -> None:
        self._now = now
        self._after = policy.overdue.after
        self._created = policy.score.age_from == "created"
        self._stretches: list[list[str]] = [[]]
        self._project_keys: list[Callable[[str], Any]] = []
        for key in policy.order:
            if key in PROJECT_KEYS:
                self._project_keys.append(share.guarantee if key == "guarantee" else share.key)
                self._stretches.append([])
            elif key == "overdue":
                if self._after is not None:
                    self._stretches[-1].append(key)
            elif key != "age" or key not in self._stretches[-1]:
                self._stretches[-1].append(key)
        self._stretches[-1].append("age")
        self._score = policy.score
        self._base: dict[tuple[str, int, int], int] = {}

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
        return tuple([self._values(keys, lane, entry) for keys in self._stretches])

    def full(self, rank: Rank, project: str) -> tuple[Any, ...]:
        """Its place among all projects, as of now."""
        if not self._project_keys:
            return rank
        whole: list[Any] = [rank[0]]
        for value, stretch in zip(self._project_keys, rank[1:], strict=True):
            whole.append(value(project))
            whole.append(stretch)
        return tuple(whole)

    def _values(self, keys: list[str], lane: LaneKey, entry: Entry) -> tuple[int, ...]:
        since = entry.created_at if self._created else entry.ready_since
        values: list[int] = []
        for key in keys:
            if key == "score":
                values.append(-self._points(lane, since))
            elif key == "priority":
                values.append(lane.priority)
            elif key == "age":
                values += (since, entry.seq)
            else:
                values += (0, since) if self.overdue(entry) else (1, 0)
        return tuple(values)

    def _points(self, lane: LaneKey, since: Instant) -> int:
        """The score; what does not depend on age is summed once."""
        key = (lane.kind, lane.depth, lane.failures)
        base = self._base.get(key)
        if base is None:
            base = self._base[key] = fixed_terms(lane, self._score)
        return base + age.term(since, self._score, self._now)
