"""Scene: everything that the overview shows, read at once; lanes and pages, never the queue."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane.executors.runfiles import tail
from fairlane.lifecycle.usage import minute_of
from fairlane.model.instant import HOUR, MINUTE, Instant, parse_instant
from fairlane.model.task import Status
from fairlane.page.words import midnight
from fairlane.planner.readiness import GATE as READINESS
from fairlane.policy.policy import Policy
from fairlane.service.desk import Desk
from fairlane.service.looking import last_cycle, preview
from fairlane.service.reports import status, timeline, trends
from fairlane.service.reports.documents import dollars, row
from fairlane.service.reports.pauses import live_pauses, pause_document
from fairlane.service.reports.resources import pool_rows
from fairlane.service.reports.shares import share_rows
from fairlane.service.reports.upcoming import upcoming
from fairlane.store.base import Filter, Reading, Tally

#: How many rows a list shows; the rest is counted and linked.
ROWS_MAX = 8
#: Of how many attempts in flight the last line is read, and how much of a log for it.
LINES_MAX = 64
LINE_BYTES = 4_000
#: What the timeline can look back on.
SPANS = {"2m": 2 * MINUTE, "10m": 10 * MINUTE, "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR}
#: The window moves in steps, so that nothing is sent while nothing happens.
STEPS = 80


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment."""

    now: Instant
    mode: str
    preset: str
    room: dict[str, Any]
    queued: dict[str, Any]
    parked_count: int
    done: int
    usd: float
    paused: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    running: list[dict[str, Any]]
    next_up: list[dict[str, Any]]
    held: list[dict[str, Any]]
    waiting: list[dict[str, Any]]
    parked: list[dict[str, Any]]
    pools: list[dict[str, Any]]
    budgets: list[dict[str, Any]]
    shares: list[dict[str, Any]]
    projects: list[str]
    span: str
    start: Instant
    end: Instant
    bars: list[dict[str, Any]]
    left_out: bool
    trend: dict[str, Any]
    last_cycle: dict[str, Any]


def scene(desk: Desk, span: str | None = None) -> Scene:
    """How things stand now."""
    with desk.store.read() as reading:
        snapshot, plan, policy = preview(desk, reading)
        tallies = reading.tallies()
        budgets = status.budget_rows(snapshot, policy, plan)
        holds = [held.document() for held in status.first_holds(plan.holds)]
        done, usd = _today(reading, plan.now)
        span, start, end, bars, left_out = _timeline(reading, plan.now, span)
        return Scene(
            now=plan.now,
            mode=policy.capacity.mode,
            preset=policy.preset_name,
            room=plan.room.document(),
            queued=status.queued(tallies, plan),
            parked_count=_count(tallies, Status.PARKED),
            done=done,
            usd=usd,
            paused=[pause_document(each) for each in live_pauses(reading)],
            warnings=status.warnings(desk, snapshot, plan, policy, budgets),
            running=_running(desk, reading, policy),
            next_up=upcoming(reading, snapshot, plan, policy),
            held=[each for each in holds if each["gate"] != READINESS],
            waiting=[each for each in holds if each["gate"] == READINESS],
            parked=_parked(reading),
            pools=pool_rows(desk, reading, policy),
            budgets=budgets,
            shares=share_rows(reading, policy, plan.now),
            projects=sorted(reading.projects()),
            span=span,
            start=start,
            end=end,
            bars=bars,
            left_out=left_out,
            trend=trends.buckets(reading, policy, start, plan.now),
            last_cycle=last_cycle(reading) or {},
        )


def _count(tallies: list[Tally], wanted: Status) -> int:
    return sum(each.count for each in tallies if each.status is wanted)


def _today(reading: Reading, now: Instant) -> tuple[int, float]:
    """Completions and dollars since midnight."""
    booked = reading.usage_sums("all", minute_of(midnight(now))).get("all")
    return (booked.completions, dollars(booked.usd) or 0.0) if booked else (0, 0.0)


def _running(desk: Desk, reading: Reading, policy: Policy) -> list[dict[str, Any]]:
    """What is in flight, each with the last line that it printed or reported."""
    rows = status.running_rows(reading, policy)
    for place, each in enumerate(rows):
        each["line"] = each["note"] or (last_line(desk, each) if place < LINES_MAX else "")
    return rows


def last_line(desk: Desk, each: dict[str, Any]) -> str:
    """The last words of an attempt: as its agent's program was understood, else as printed."""
    folder = desk.home / "runs" / each["task"] / str(each["attempt"])
    for name, told in (("events.jsonl", understood), ("stdout.log", said)):
        for line in reversed(_end_of(folder / name)):
            words = told(line.strip())
            if words:
                return words
    return ""


def _end_of(path: Path) -> list[str]:
    """The last lines of a file; nothing where it is on another machine, or not there yet."""
    return tail(path, LINE_BYTES).decode("utf-8", "replace").split("\n")


def understood(line: str) -> str:
    """The words of a record that the daemon made of a line; of several lines the last."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # nothing, or cut
        return ""
    words = record.get("text") if isinstance(record, dict) else None
    return words.strip().rpartition("\n")[2] if isinstance(words, str) else ""


def said(line: str) -> str:
    """A printed line as people read it: of a record in JSON, the words in it."""
    if not line.startswith("{"):
        return line
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    words = (record.get(key) for key in ("text", "message", "detail", "result", "type"))
    return next((each for each in words if each and isinstance(each, str)), line)


def _parked(reading: Reading) -> list[dict[str, Any]]:
    found = reading.listing(Filter(status=(Status.PARKED,)), 0, ROWS_MAX)
    return [row(placed, None) for placed in found]


def _timeline(
    reading: Reading, now: Instant, span: str | None
) -> tuple[str, Instant, Instant, list[dict[str, Any]], bool]:
    """Attempts in the window; without a wish, the shortest that shows all of the last hour."""
    name = span if span in SPANS else "1h"
    bars, left_out = timeline.bars_since(reading, now - SPANS[name], now)
    if span not in SPANS:
        first = min((parse_instant(bar["from"]) for bar in bars), default=now)
        name = next((key for key in SPANS if now - first <= SPANS[key]), "1h")
        name = "1h" if SPANS[name] > HOUR else name
    length = SPANS[name]
    step = length // STEPS
    end = -(-now // step) * step
    return name, end - length, end, bars, left_out


__all__ = ["SPANS", "Scene", "scene"]
