"""Timeline: who ran when, how much was done over time, and what starts next; all bounded."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from fairlane.model.documents.reports import PickDocument, PointDocument
from fairlane.model.instant import HOUR, MINUTE, SECOND, Instant, minute_of, show_instant
from fairlane.model.plan import Plan
from fairlane.model.project import Worker
from fairlane.model.record import replace
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import Attempt, Outcome, Task
from fairlane.planner import lanes as planner
from fairlane.policy.policy import Policy
from fairlane.service.reports.documents import shown, title_of, tokens_of
from fairlane.service.reports.stats import percentile, seconds, wait_of
from fairlane.store.base import Reading

#: How many attempts are read, and in how many rows they are drawn.
BARS_MAX = 600
ROWS_MAX = 24


#: An attempt on the time line, and the row in which it is drawn.
RowBarDocument = TypedDict(
    "RowBarDocument",
    {
        "task": str,
        "title": str,
        "project": str,
        "kind": str,
        "worker": str | None,
        "attempt": int,
        "from": str,
        "to": str | None,
        "outcome": str | None,
        "row": int,
    },
)


def bars_since(
    reading: Reading, start: Instant, now: Instant, most: int = BARS_MAX
) -> tuple[list[RowBarDocument], bool]:
    """What ran in the window, oldest first, and whether older attempts were left out."""
    ended = reading.ended_attempts(start, most)
    running = reading.open_attempts()[-most:]
    named = reading.tasks(attempt.task for attempt in running)
    titles = {task.id: title_of(task) for _, task in ended}
    titles |= {name: title_of(task) for name, task in named.items()}
    attempts = sorted(
        [*(attempt for attempt, _ in ended), *running],
        key=lambda attempt: (attempt.leased_at, attempt.fence),
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


def _bar(attempt: Attempt, title: str, row: int) -> RowBarDocument:
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


POINTS = 30
#: How many ended attempts are read, the newest.
ATTEMPTS_MAX = 2_000
#: How long a bucket may be: lengths that people count in.
STEPS = tuple(
    [SECOND * number for number in (5, 10, 20, 30)]
    + [MINUTE * number for number in (1, 2, 5, 10, 15, 30)]
    + [HOUR * number for number in (1, 2, 6, 24)]
)


class BucketDocument(PointDocument):
    """What happened in one step of time; waits in seconds."""

    at: str
    wait_p50: float | None
    wait_p95: float | None


class TrendDocument(TypedDict):
    """Buckets, oldest first; `whole`: no attempt was left out."""

    since: str
    step_seconds: int
    whole: bool
    buckets: list[BucketDocument]


def buckets(
    reading: Reading, policy: Policy, start: Instant, now: Instant, points: int = POINTS
) -> TrendDocument:
    """One row a bucket, oldest first; the last one is not over yet.

    Buckets of minutes count what was booked, so everything; shorter ones count the attempts read.
    """
    length = now - start
    longest = -(-length // points // STEPS[-1]) * STEPS[-1]
    step = next((option for option in STEPS if option * points >= length), longest)
    frame = _Frame(start // step * step, step, (now - start // step * step) // step + 1)
    starts = [frame.start + step * number for number in range(frame.count)]
    rows: list[BucketDocument] = [
        {
            "at": show_instant(at),
            "completions": 0,
            "starts": 0,
            "tokens": 0,
            "wait_p50": None,
            "wait_p95": None,
        }
        for at in starts
    ]
    ended = reading.ended_attempts(frame.start, ATTEMPTS_MAX)
    if step >= MINUTE:
        _count_booked(rows, frame, reading, policy)
    else:
        _count_attempts(rows, frame, [attempt for attempt, _ in ended], reading, policy)
    for row, waits in zip(rows, _waits(reading, frame, ended), strict=True):
        row["wait_p50"] = seconds(percentile(waits, 50))
        row["wait_p95"] = seconds(percentile(waits, 95))
    return {
        "since": show_instant(frame.start),
        "step_seconds": step // SECOND,
        "whole": len(ended) < ATTEMPTS_MAX,
        "buckets": rows,
    }


class _Frame(NamedTuple):
    """Where buckets begin, how long each is, how many there are."""

    start: Instant
    step: int
    count: int  # type: ignore[assignment]  # a tuple has a method of this name

    def place(self, at: Instant) -> int:
        """The bucket of an instant."""
        return min(self.count - 1, max(0, (at - self.start) // self.step))


def _count_booked(
    rows: list[BucketDocument], frame: _Frame, reading: Reading, policy: Policy
) -> None:
    for booked in reading.usage("all", minute_of(frame.start)):
        row = rows[frame.place(booked.minute)]
        row["completions"] += booked.completions
        row["starts"] += booked.starts
        row["tokens"] += tokens_of(booked, policy)


def _count_attempts(
    rows: list[BucketDocument],
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
            row["tokens"] += tokens_of(attempt, policy)


def _waits(reading: Reading, frame: _Frame, ended: list[tuple[Attempt, Task]]) -> list[list[int]]:
    """Waits by when these were leased; those of earlier attempts of a task are not kept."""
    running = reading.open_attempts()
    tasks = reading.tasks(attempt.task for attempt in running)
    waits: list[list[int]] = [[] for _ in range(frame.count)]
    for attempt, task in (*ended, *((attempt, tasks[attempt.task]) for attempt in running)):
        wait = wait_of(attempt, task)
        if wait is not None and attempt.leased_at >= frame.start:
            waits[frame.place(attempt.leased_at)].append(wait)
    return waits


#: How many starts are listed, and how many tasks of a lane are read for them.
NEXT_MAX = 7
WINDOW = 32


class UpcomingDocument(PickDocument):
    """A future start; `now`: it may start at once."""

    title: str
    now: bool


def upcoming(
    reading: Reading, snapshot: Snapshot, plan: Plan, policy: Policy, most: int = NEXT_MAX
) -> list[UpcomingDocument]:
    """The next starts: what may start now, then what would start with more slots.

    Only room is made larger: what a pause, budget, lock or other cap holds is not among them.
    """
    picks = plan.picks
    if len(picks) < most:
        picks = _with_room(reading, snapshot, plan, policy, most).picks
    tasks = reading.tasks(pick.task for pick in picks[:most])
    now = {pick.task for pick in plan.picks}
    return [
        {**pick.document(), "title": title_of(tasks[pick.task]), "now": pick.task in now}
        for pick in picks[:most]
        if pick.task in tasks
    ]


def _with_slots(worker: Worker, more: int) -> Worker:
    return worker if worker.slots is None else replace(worker, slots=worker.slots + more)


def _with_room(reading: Reading, snapshot: Snapshot, plan: Plan, policy: Policy, more: int) -> Plan:
    """The plan of the same situation with room for `more`."""
    cap, batch = policy.caps.get("all"), policy.capacity.batch
    caps = dict(policy.caps)
    if cap is not None:
        caps["all"] = max(cap, plan.room.in_flight) + more
    capacity = replace(policy.capacity, batch=None if batch is None else batch + more)
    roomy = replace(policy, caps=caps, capacity=capacity)
    workers = tuple(_with_slots(worker, more) for worker in snapshot.workers)
    assumed = snapshot.assumed and _with_slots(snapshot.assumed, more)
    larger = replace(snapshot, workers=workers, assumed=assumed)
    try:
        return planner.plan(larger, roomy, plan.now)
    except planner.WindowUsedUp as short:
        age_from = policy.score.age_from
        wider = {lane.key: lane for lane in reading.lanes(age_from, WINDOW, short.lanes)}
        widened = tuple(wider.get(lane.key, lane) for lane in snapshot.lanes)
        try:
            return planner.plan(replace(larger, lanes=widened), roomy, plan.now)
        except planner.WindowUsedUp:  # more at once than anybody reads: what starts now is enough
            return plan
