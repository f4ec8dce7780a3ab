"""Past: ended attempts as reports count them: tokens, waits, durations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fairlane.lifecycle.usage import Tokens, counted
from fairlane.model.instant import SECOND, Instant, Micros
from fairlane.policy.policy import Policy
from fairlane.service.reports.documents import title_of
from fairlane.store.base import Attempt, Reading

#: Reports look at no more attempts than this, the newest.
ATTEMPTS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Past:
    """One ended attempt."""

    attempt: Attempt
    title: str
    tokens: int  # those that count
    wait: Micros | None  # from ready to leased; None: of an earlier attempt, not kept
    ended_at: Instant

    @property
    def duration(self) -> Micros:
        """From the lease to its end."""
        return self.ended_at - self.attempt.leased_at


def ended_since(reading: Reading, policy: Policy, since: Instant) -> list[Past]:
    """What ended since then, oldest first."""
    found = []
    for attempt, task in reading.ended_attempts(since, ATTEMPTS_MAX):
        ready, last = task.ready_since, attempt.number == task.attempts
        wait = None
        if last and ready is not None and task.failures == 0:
            wait = max(0, attempt.leased_at - ready)
        tokens = counted(Tokens(*attempt.tokens), policy.usage.count)
        ended_at = attempt.ended_at or attempt.leased_at
        found.append(Past(attempt, title_of(task), tokens, wait, ended_at))
    return sorted(found, key=lambda past: (past.ended_at, past.attempt.fence))


def percentile(values: Iterable[int], percent: int) -> int | None:
    """The smallest value that at least this many of a hundred do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[-(-percent * len(ordered) // 100) - 1] if ordered else None


def seconds(length: Micros | None) -> float | None:
    """A length in seconds, as reports give it."""
    return None if length is None else length / SECOND


def spread(lengths: Iterable[Micros], *percents: int) -> dict[str, Any]:
    """Percentiles of lengths, in seconds, and how many there are."""
    listed = list(lengths)
    told: dict[str, Any] = {f"p{each}": seconds(percentile(listed, each)) for each in percents}
    return told | {"count": len(listed)}
