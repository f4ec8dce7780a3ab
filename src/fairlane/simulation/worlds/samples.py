"""Samples: recorded attempts, from which the fates of others are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fairlane.model.instant import MINUTE, Micros
from fairlane.model.record import changed
from fairlane.model.task import Attempt, Outcome, Task
from fairlane.simulation.draws import DURATION, below, draws
from fairlane.simulation.world import Fate

#: A level with fewer samples is passed over for the next one.
LEAST = 5
#: How alike the attempts are from which a fate is drawn; the last level is no sample at all.
LEVELS = ("project, kind and agent", "kind and agent", "agent", "all", "default")
#: Ends that say something about the work; the others were somebody's decision.
DRAWN = frozenset(Outcome) - {Outcome.RELEASED, Outcome.CANCELED}
#: How long an attempt takes of which nothing is known.
LASTS: Micros = 10 * MINUTE

Key = tuple[str | None, ...]


class Place(NamedTuple):
    """What tells which samples are alike."""

    project: str
    kind: str
    agent: str | None

    def keys(self) -> tuple[Key, ...]:
        """The key of each level."""
        return ((self.project, self.kind, self.agent), (self.kind, self.agent), (self.agent,), ())


class Found(NamedTuple):
    """The samples of a place: from which level they are, and the fates, shortest first."""

    level: str
    fates: tuple[Fate, ...]


class Samples:
    """Fates by place; a place with few of them has those of the next level."""

    def __init__(self, rows: Iterable[tuple[Place, Fate]], estimate: int) -> None:
        """`estimate`: tokens of an attempt of which nothing is known, by the policy."""
        self._rows: dict[tuple[int, Key], list[Fate]] = {}
        self._found: dict[tuple[Place, Micros], Found] = {}
        self._default = Fate(LASTS, tokens=(0, estimate, 0, 0))
        for place, fate in rows:
            for level, key in enumerate(place.keys()):
                self._rows.setdefault((level, key), []).append(fate)
        for fates in self._rows.values():
            fates.sort(key=_length)

    def find(self, place: Place, ran: Micros = 0) -> Found:
        """What is known of attempts that take longer than `ran`."""
        found = self._found.get((place, ran))
        if found is None:
            found = self._look(place, ran)
            if not ran:  # what is under way is asked for once
                self._found[place, ran] = found
        return found

    def fate(self, seed: int, task: str, attempt: int, place: Place, ran: Micros = 0) -> Fate:
        """One of the samples; an attempt that ran longer than all of them takes twice its time."""
        fates = self.find(place, ran).fates
        fate = fates[below(len(fates), draws(seed, task, attempt)[DURATION])]
        return fate if fate.lasts > ran else changed(fate, lasts=2 * ran)

    def _look(self, place: Place, ran: Micros) -> Found:
        for level, key in enumerate(place.keys()):
            fates = self._rows.get((level, key), ())
            longer = tuple(fate for fate in fates if fate.lasts > ran)
            if len(fates) >= LEAST and longer:
                return Found(LEVELS[level], longer)
        return Found(LEVELS[-1], (self._default,))


def place_of(task: Task) -> Place:
    """Where the samples of a task's attempts are."""
    return Place(task.project, task.kind, task.agent)


def sample_of(attempt: Attempt) -> tuple[Place, Fate] | None:
    """An ended attempt as a sample; None: its end was somebody's decision, or took no time."""
    outcome = Outcome(attempt.outcome) if attempt.outcome is not None else None
    if outcome not in DRAWN or outcome is None or attempt.ended_at is None:
        return None
    fate = Fate(max(1, attempt.ended_at - attempt.leased_at), outcome, attempt.tokens, attempt.usd)
    return Place(attempt.project, attempt.kind, attempt.agent), fate


def _length(fate: Fate) -> tuple[Micros, str, tuple[int, ...]]:
    return fate.lasts, fate.outcome, fate.tokens
