"""Trends: what was done and how long it waited, over time; bounded in rows and points."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairlane.lifecycle.usage import Tokens, counted, minute_of
from fairlane.model.instant import HOUR, MINUTE, SECOND, Instant, show_instant
from fairlane.model.task import Outcome, Task
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.reports.past import percentile, seconds
from fairlane.store.base import Attempt, Reading

SPAN = HOUR
POINTS = 30
#: How many ended attempts are read, the newest.
ATTEMPTS_MAX = 2_000
#: How long a bucket may be: lengths that people count in.
STEPS = tuple(
    [SECOND * each for each in (5, 10, 20, 30)]
    + [MINUTE * each for each in (1, 2, 5, 10, 15, 30)]
    + [HOUR * each for each in (1, 2, 6, 24)]
)


def trends(desk: Desk, since: Instant | None = None, points: int = POINTS) -> dict[str, Any]:
    """Completions, tokens and waits since then (an hour ago), in buckets."""
    now = desk.now()
    with desk.store.read() as reading:
        policy = desk.policy_for_reading(reading)
        start = now - SPAN if since is None else since
        found = buckets(reading, policy, start, now, points)
    return {"schema": SCHEMA, "now": show_instant(now), **found}


def buckets(
    reading: Reading, policy: Policy, start: Instant, now: Instant, points: int = POINTS
) -> dict[str, Any]:
    """One row a bucket, oldest first; the last one is not over yet.

    Buckets of minutes count what was booked, so everything; shorter ones count the attempts read.
    """
    length = now - start
    longest = -(-length // points // STEPS[-1]) * STEPS[-1]
    step = next((each for each in STEPS if each * points >= length), longest)
    frame = _Frame(start // step * step, step, (now - start // step * step) // step + 1)
    rows: list[dict[str, Any]] = [
        {"at": show_instant(frame.start + step * number), **dict.fromkeys(_COUNTED, 0)}
        for number in range(frame.count)
    ]
    ended = reading.ended_attempts(frame.start, ATTEMPTS_MAX)
    if step >= MINUTE:
        _count_booked(rows, frame, reading, policy)
    else:
        _count_attempts(rows, frame, [attempt for attempt, _ in ended], reading, policy)
    for row, found in zip(rows, _waits(reading, frame, ended), strict=True):
        row["wait_p50"] = seconds(percentile(found, 50))
        row["wait_p95"] = seconds(percentile(found, 95))
    return {
        "since": show_instant(frame.start),
        "step_seconds": step // SECOND,
        "whole": len(ended) < ATTEMPTS_MAX,
        "buckets": rows,
    }


_COUNTED = ("completions", "starts", "tokens")


class _Frame(NamedTuple):
    """Where buckets begin, how long each is, how many there are."""

    start: Instant
    step: int
    count: int  # type: ignore[assignment]  # a tuple has a method of this name

    def place(self, at: Instant) -> int:
        """The bucket of an instant."""
        return min(self.count - 1, max(0, (at - self.start) // self.step))


def _count_booked(
    rows: list[dict[str, Any]], frame: _Frame, reading: Reading, policy: Policy
) -> None:
    for each in reading.usage("all", minute_of(frame.start)):
        row = rows[frame.place(each.minute)]
        row["completions"] += each.completions
        row["starts"] += each.starts
        row["tokens"] += counted(Tokens(*each.tokens), policy.usage.count)


def _count_attempts(
    rows: list[dict[str, Any]],
    frame: _Frame,
    ended: list[Attempt],
    reading: Reading,
    policy: Policy,
) -> None:
    for attempt in (*ended, *reading.open_attempts()):
        if attempt.leased_at >= frame.start:
            rows[frame.place(attempt.leased_at)]["starts"] += 1
        if attempt.ended_at is not None:
            row = rows[frame.place(attempt.ended_at)]
            row["completions"] += attempt.outcome == Outcome.SUCCEEDED
            row["tokens"] += counted(Tokens(*attempt.tokens), policy.usage.count)


def _waits(reading: Reading, frame: _Frame, ended: list[tuple[Attempt, Task]]) -> list[list[int]]:
    """Waits by when these were leased; those of earlier attempts of a task are not kept."""
    running = reading.open_attempts()
    tasks = reading.tasks(each.task for each in running)
    found: list[list[int]] = [[] for _ in range(frame.count)]
    for attempt, task in (*ended, *((each, tasks[each.task]) for each in running)):
        ready = task.ready_since
        first = ready is not None and not task.failures and attempt.number == task.attempts
        if ready is not None and first and attempt.leased_at >= frame.start:
            found[frame.place(attempt.leased_at)].append(max(0, attempt.leased_at - ready))
    return found
