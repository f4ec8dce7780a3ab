"""Lane: all ready tasks that no rule can tell apart except by age."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

from fairlane.model.instant import Instant
from fairlane.model.record import dataclass


class LaneKey(NamedTuple):
    """The task's own fields that gates and order look at; never depends on the policy."""

    project: str = "default"
    kind: str = "code"
    priority: int = 100
    depth: int = 0
    failures: int = 0
    agent: str | None = None
    pool: str | None = None
    parallel: bool | None = None
    locks: tuple[str, ...] = ()
    workspace: str | None = None
    labels: tuple[str, ...] = ()
    group: str | None = None


class Shape(NamedTuple):
    """What gates can see of a lane: lanes of one shape get the same answers."""

    project: str
    kind: str
    agent: str | None
    pool: str | None
    parallel: bool | None
    locks: tuple[str, ...]
    workspace: str | None
    labels: tuple[str, ...]
    group: str | None


class Entry(NamedTuple):
    """One task of a lane."""

    task: str
    seq: int
    created_at: Instant
    ready_since: Instant
    estimate: int | None = None  # the caller's guess in tokens


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane with its first tasks in order; a store reads only as many as a round may take."""

    key: LaneKey
    count: int  # ready tasks in it, read or not
    by_ready: tuple[Entry, ...]  # oldest first by `ready_since`
    by_created: tuple[Entry, ...]  # oldest first by `created_at`
    shape: Shape = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", shape_of(self.key))

    def in_order(self, age_from: str) -> tuple[Entry, ...]:
        """Its tasks, oldest first by the age that the policy names."""
        return self.by_created if age_from == "created" else self.by_ready


def lane_of(key: LaneKey, entries: list[Entry]) -> Lane:
    """A lane whose tasks are all known."""
    by_ready = tuple(sorted(entries, key=lambda entry: (entry.ready_since, entry.seq)))
    by_created = tuple(sorted(entries, key=lambda entry: (entry.created_at, entry.seq)))
    return Lane(key, len(entries), by_ready, by_ready if by_ready == by_created else by_created)


def shape_of(key: LaneKey) -> Shape:
    """The part of a lane's key that gates look at."""
    return Shape(key[0], key[1], *key[5:])
