"""Scene: everything that the overview shows, read at once; lanes and pages, never the queue."""

from __future__ import annotations

import json

from fairlane.engine.context import Context
from fairlane.engine.look.planned import preview
from fairlane.executors.runfiles import end_of, tail
from fairlane.model.documents.admin import BudgetDocument, PoolDocument
from fairlane.model.documents.parts import HeldDocument, PauseDocument, RoomDocument
from fairlane.model.documents.reports import QueuedDocument, RunningDocument, WarningDocument
from fairlane.model.documents.tasks import TaskDocument
from fairlane.model.instant import HOUR, MINUTE, Instant, minute_of, parse_instant
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.task import Status
from fairlane.page.words import midnight
from fairlane.planner.readiness import GATE as READINESS
from fairlane.policy.policy import Policy
from fairlane.service.reports import status, timeline
from fairlane.service.reports.documents import dollars, pause_document, row
from fairlane.service.reports.resources import pool_rows
from fairlane.service.reports.stats import UsedShareDocument, share_rows
from fairlane.store.base import Filter, Reading

#: How many rows a list shows; the rest is counted and linked.
ROWS_MAX = 8
#: Of how many attempts in flight the last line is read, and how much of a log for it.
LINES_MAX = 64
LINE_BYTES = 4_000
#: What the timeline can look back on.
SPANS = {"2m": 2 * MINUTE, "10m": 10 * MINUTE, "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR}
#: The window moves in steps, so that nothing is sent while nothing happens.
STEPS = 80


class RunningLine(RunningDocument):
    """What is in flight, with the last line that it printed or reported."""

    line: str


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment."""

    now: Instant
    mode: str
    preset: str
    room: RoomDocument
    queued: QueuedDocument
    parked_count: int
    done: int
    usd: float
    paused: list[PauseDocument]
    warnings: list[WarningDocument]
    running: list[RunningLine]
    next_up: list[timeline.UpcomingDocument]
    held: list[HeldDocument]
    waiting: list[HeldDocument]
    parked: list[TaskDocument]
    pools: list[PoolDocument]
    budgets: list[BudgetDocument]
    shares: list[UsedShareDocument]
    projects: list[str]
    span: str
    start: Instant
    end: Instant
    bars: list[timeline.RowBarDocument]
    left_out: bool
    trend: timeline.TrendDocument


def scene(context: Context, span: str | None = None) -> Scene:
    """How things stand now."""
    with context.store.read() as reading:
        snapshot, plan, policy = preview(context, reading)
        tallies = reading.tallies()
        budgets = status.budget_rows(snapshot, policy, plan)
        holds = [hold.document() for hold in status.first_holds(plan.holds)]
        done, usd = _today(reading, plan.now)
        span, start, end, bars, left_out = _timeline(reading, plan.now, span)
        return Scene(
            now=plan.now,
            mode=policy.capacity.mode,
            preset=policy.preset_name,
            room=plan.room.document(),
            queued=status.queued(tallies, plan),
            parked_count=sum(row.count for row in tallies if row.status is Status.PARKED),
            done=done,
            usd=usd,
            paused=[pause_document(row) for row in status.live_pauses(reading)],
            warnings=status.warnings(context, snapshot, plan, policy, budgets)
            + status.delays(context, reading, plan, policy),
            running=_running(context, reading, policy),
            next_up=timeline.upcoming(reading, snapshot, plan, policy),
            held=[row for row in holds if row["gate"] != READINESS],
            waiting=[row for row in holds if row["gate"] == READINESS],
            parked=_parked(reading),
            pools=pool_rows(context, reading, policy),
            budgets=budgets,
            shares=share_rows(reading, policy, plan.now),
            projects=sorted(reading.table(Project)),
            span=span,
            start=start,
            end=end,
            bars=bars,
            left_out=left_out,
            trend=timeline.buckets(reading, policy, start, plan.now),
        )


def _today(reading: Reading, now: Instant) -> tuple[int, float]:
    """Completions and dollars since midnight."""
    booked = reading.usage_sums("all", minute_of(midnight(now))).get("all")
    return (booked.completions, dollars(booked.usd) or 0.0) if booked else (0, 0.0)


def _running(context: Context, reading: Reading, policy: Policy) -> list[RunningLine]:
    """What is in flight, each with the last line that it printed or reported."""
    return [
        {**row, "line": row["note"] or (last_line(context, row) if place < LINES_MAX else "")}
        for place, row in enumerate(status.running_rows(reading, policy))
    ]


def last_line(context: Context, run: RunningDocument) -> str:
    """The last words of an attempt: as its agent's program was understood, else as printed."""
    folder = context.home / "runs" / run["task"] / str(run["attempt"])
    ends = (
        (tail(folder / "events.jsonl", LINE_BYTES), understood),
        (end_of(context.executor(), folder, "stdout", LINE_BYTES), said),
    )  # empty where the attempt is on another machine, or has printed nothing yet
    lines = (
        words_of(line.strip())
        for data, words_of in ends
        for line in reversed(data.decode("utf-8", "replace").split("\n"))
    )
    return next(filter(None, lines), "")


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
    return next((word for word in words if word and isinstance(word, str)), line)


def _parked(reading: Reading) -> list[TaskDocument]:
    tasks = reading.listing(Filter(status=(Status.PARKED,)), 0, ROWS_MAX)
    return [row(placed, None) for placed in tasks]


def _timeline(
    reading: Reading, now: Instant, span: str | None
) -> tuple[str, Instant, Instant, list[timeline.RowBarDocument], bool]:
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
