"""Trends: what was done and how long it waited, over time; bounded in rows and points."""

from __future__ import annotations

from typing import Any

from fairlead.lifecycle.usage import Tokens, counted, minute_of
from fairlead.model.instant import HOUR, MINUTE, SECOND, Instant, show_instant
from fairlead.policy.policy import Policy
from fairlead.service import SCHEMA
from fairlead.service.desk import Desk
from fairlead.service.reports.past import percentile, seconds
from fairlead.store.base import Reading

SPAN = HOUR
POINTS = 30
#: How many ended attempts are read for their waits, the newest.
WAITS_MAX = 2_000


def trends(desk: Desk, since: Instant | None = None, points: int = POINTS) -> dict[str, Any]:
    """Completions, tokens and waits since then (an hour ago), in buckets of whole minutes."""
    now = desk.now()
    with desk.store.read() as reading:
        policy = desk.policy_for_reading(reading)
        start = now - SPAN if since is None else since
        found = buckets(reading, policy, start, now, points)
    return {"schema": SCHEMA, "now": show_instant(now), **found}


def buckets(
    reading: Reading, policy: Policy, start: Instant, now: Instant, points: int = POINTS
) -> dict[str, Any]:
    """One row a bucket, oldest first; the last one is not over yet."""
    start = minute_of(start)
    step = max(MINUTE, -(-(now - start) // points // MINUTE) * MINUTE)
    count = (now - start) // step + 1
    rows = [
        {"at": show_instant(start + step * number), "completions": 0, "starts": 0, "tokens": 0}
        for number in range(count)
    ]
    for each in reading.usage("all", start):
        row: dict[str, Any] = rows[_place(each.minute, start, step, count)]
        row["completions"] += each.completions
        row["starts"] += each.starts
        row["tokens"] += counted(Tokens(*each.tokens), policy.usage.count)
    waits, whole = _waits(reading, start, step, count)
    for row, found in zip(rows, waits, strict=True):
        row["wait_p50"] = seconds(percentile(found, 50))
        row["wait_p95"] = seconds(percentile(found, 95))
    return {
        "since": show_instant(start),
        "step_seconds": step // SECOND,
        "waits_whole": whole,
        "buckets": rows,
    }


def _waits(reading: Reading, start: Instant, step: int, count: int) -> tuple[list[list[int]], bool]:
    """Waits of first attempts by when these were leased, and whether all were read."""
    ended = reading.ended_attempts(start, WAITS_MAX)
    running = reading.open_attempts()
    tasks = reading.tasks(each.task for each in running)
    found: list[list[int]] = [[] for _ in range(count)]
    pairs = [*ended, *((each, tasks[each.task]) for each in running if each.task in tasks)]
    for attempt, task in pairs:
        ready = task.ready_since
        if ready is None or task.failures or attempt.number != task.attempts:
            continue  # the wait of an earlier attempt is not kept
        if attempt.leased_at >= start:
            place = _place(attempt.leased_at, start, step, count)
            found[place].append(max(0, attempt.leased_at - ready))
    return found, len(ended) < WAITS_MAX


def _place(at: Instant, start: Instant, step: int, count: int) -> int:
    return min(count - 1, max(0, (at - start) // step))
