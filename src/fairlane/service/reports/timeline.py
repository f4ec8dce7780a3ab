"""Timeline: who ran when, in rows that never overlap; bounded, the newest attempts first."""

from __future__ import annotations

from typing import Any

from fairlane.model.instant import HOUR, Instant, show_instant
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.reports.documents import shown, title_of
from fairlane.store.base import Attempt, Reading

SPAN = HOUR
#: How many attempts are read, and in how many rows they are told.
BARS_MAX = 600
ROWS_MAX = 24


def timeline(desk: Desk, since: Instant | None = None) -> dict[str, Any]:
    """Attempts that ran since then (an hour ago), each in the first row that was free for it."""
    now = desk.now()
    start = now - SPAN if since is None else since
    with desk.store.read() as reading:
        bars, left_out = bars_since(reading, start, now)
    rows = max((bar["row"] for bar in bars), default=-1) + 1
    window = {"since": show_instant(start), "now": show_instant(now)}
    return {"schema": SCHEMA, **window, "rows": rows, "left_out": left_out, "bars": bars}


def bars_since(
    reading: Reading, start: Instant, now: Instant, most: int = BARS_MAX
) -> tuple[list[dict[str, Any]], bool]:
    """What ran in the window, oldest first, and whether older attempts were left out."""
    ended = reading.ended_attempts(start, most)
    running = reading.open_attempts()[-most:]
    named = reading.tasks(each.task for each in running)
    titles = {task.id: title_of(task) for _, task in ended}
    titles |= {name: title_of(task) for name, task in named.items()}
    attempts = sorted(
        [*(attempt for attempt, _ in ended), *running],
        key=lambda each: (each.leased_at, each.fence),
    )
    free_at: list[Instant] = []  # by row: when its last attempt ended
    bars = []
    for attempt in attempts[-most:]:
        until = now if attempt.ended_at is None else attempt.ended_at
        row = _row(free_at, attempt.leased_at)
        if row == len(free_at):
            free_at.append(until)
        free_at[row] = max(free_at[row], until)
        bars.append(_bar(attempt, titles.get(attempt.task, ""), row))
    return bars, len(ended) >= most or len(attempts) > most


def _row(free_at: list[Instant], start: Instant) -> int:
    """The first row that is free; where all are taken, the one that is free first."""
    for row, free in enumerate(free_at):
        if free <= start:
            return row
    if len(free_at) < ROWS_MAX:
        return len(free_at)
    return free_at.index(min(free_at))


def _bar(attempt: Attempt, title: str, row: int) -> dict[str, Any]:
    return {
        "task": attempt.task,
        "title": title,
        "project": attempt.project,
        "kind": attempt.kind,
        "worker": attempt.worker,
        "attempt": attempt.number,
        "from": show_instant(attempt.leased_at),
        "to": shown(attempt.ended_at),
        "outcome": attempt.outcome,
        "row": row,
    }
