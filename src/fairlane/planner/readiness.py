"""Readiness: what a queued task of its own waits for, as policy and time have it."""

from __future__ import annotations

from collections.abc import Iterator

from fairlane.model.instant import Instant, show_instant
from fairlane.model.plan import IDS_SHOWN, Held, Hold
from fairlane.model.snapshot import Snapshot, Waiting
from fairlane.model.task import Entry, Lane, LaneKey, Status, lane_of
from fairlane.policy.policy import Policy

GATE = "readiness"
_DEAD = (Status.PARKED, Status.CANCELED)

#: What waiting tasks wait for, as a plan says it of many.
SENTENCES = {
    "needs": "waits for tasks that are not done",
    "parent": "waits for a parent that is not done",
    "artifact": "waits for an artifact that does not exist yet",
    "backoff": "waits after a failure",
    "not_before": "may not start yet",
    "source": "held by its source",
    "upstream": "needs a task that is parked or canceled",
    "paused": "paused by itself",
}


def waits(task: Waiting, policy: Policy, now: Instant) -> Iterator[Hold]:
    """Everything that this task waits for, in the order of the codes."""
    upstream = policy.readiness.upstream
    parents = [task.parent] if task.parent and policy.readiness.parent == "done" else []
    ignored = _DEAD if upstream == "run" else ()
    for code, pairs in (("needs", task.needs), ("parent", parents)):
        ids = [name for name, status in pairs if status not in (*_DEAD, *ignored)]
        if ids:
            word = "parent " if code == "parent" else ""
            yield Hold(GATE, code, f"waits for {word}{', '.join(ids)}", None, tuple(ids))
    if task.artifacts:
        yield Hold(GATE, "artifact", f"waits for {', '.join(task.artifacts)} to appear")
    if task.backoff_until is not None and task.backoff_until > now:
        text = f"waits after a failure until {show_instant(task.backoff_until)}"
        text += f"; {task.failed}" if task.failed else ""
        yield Hold(GATE, "backoff", text, task.backoff_until)
    if task.not_before is not None and task.not_before > now:
        text = f"may not start before {show_instant(task.not_before)}"
        yield Hold(GATE, "not_before", text, task.not_before)
    if task.source:
        yield Hold(GATE, "source", f"its source holds it: {task.source}")
    if upstream != "run":
        dead = [(name, status) for name, status in (*task.needs, *parents) if status in _DEAD]
        if dead:
            text = "needs " + ", ".join(f"{name} ({status})" for name, status in dead)
            yield Hold(GATE, "upstream", text, None, tuple(name for name, _ in dead))
    if task.paused:
        yield Hold(GATE, "paused", "this task is paused")


def admit(
    snapshot: Snapshot, policy: Policy, now: Instant
) -> tuple[tuple[Lane, ...], tuple[Held, ...]]:
    """The lanes with every waiting task that is ready by now, and the rest counted by code."""
    ready: dict[LaneKey, list[Entry]] = {}
    first: dict[str, list[tuple[Waiting, Hold]]] = {}
    for task in snapshot.waiting:
        hold = next(waits(task, policy, now), None)
        if hold is None:
            ready.setdefault(task.lane, []).append(task.entry)
        else:
            first.setdefault(hold.code, []).append((task, hold))
    lanes = snapshot.lanes
    if ready:
        merged = [_merged(lane, ready.pop(lane.key, [])) for lane in lanes]
        lanes = (*merged, *(lane_of(key, entries) for key, entries in ready.items()))
    return lanes, _counted(snapshot, first)


def _merged(lane: Lane, more: list[Entry]) -> Lane:
    """The lane with more tasks; what follows the tasks that were read stays unread."""
    if not more:
        return lane
    both = lane_of(lane.key, [*lane.by_ready, *more]), lane_of(lane.key, [*lane.by_created, *more])
    return Lane(
        lane.key,
        lane.count + len(more),
        _read(lane, lane.by_ready, both[0].by_ready),
        _read(lane, lane.by_created, both[1].by_created),
    )


def _read(lane: Lane, known: tuple[Entry, ...], merged: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return merged if len(known) == lane.count else merged[: merged.index(known[-1]) + 1]


def _counted(snapshot: Snapshot, first: dict[str, list[tuple[Waiting, Hold]]]) -> tuple[Held, ...]:
    by_code: dict[str, Held] = {}
    for code, pairs in first.items():
        pairs.sort(key=lambda pair: pair[0].entry.seq)
        untils = [hold.until for _, hold in pairs if hold.until is not None]
        hold = Hold(GATE, code, SENTENCES[code], min(untils, default=None))
        ids = tuple(task.entry.task for task, _ in pairs[:IDS_SHOWN])
        by_code[code] = Held(hold, len(pairs), ids)
    for counted in snapshot.wait_counts:
        before = by_code.get(counted.code)
        ends = (counted.until, before.hold.until if before else None)
        until = min([end for end in ends if end is not None], default=None)
        hold = Hold(GATE, counted.code, SENTENCES[counted.code], until)
        ids = (*(before.tasks if before else ()), *counted.tasks)
        count = counted.count + (before.count if before else 0)
        by_code[counted.code] = Held(hold, count, ids[:IDS_SHOWN])
    return tuple(by_code[code] for code in sorted(by_code))
