"""Why, out of the store: the same explanation, with as much of the queue as it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlane.engine.context import Context
from fairlane.engine.look.planned import look_and_plan
from fairlane.engine.task_changes import ready_at
from fairlane.lifecycle.backoff import half_open_at
from fairlane.model.instant import Instant, show_instant
from fairlane.model.record import replace
from fairlane.model.snapshot import Snapshot, Waiting, waits_of
from fairlane.model.task import Lane, LaneKey, Status, Task
from fairlane.planner.round import Round
from fairlane.planner.tries import found
from fairlane.planner.why import PLACES_MAX, Why, explain, place_of
from fairlane.policy.policy import Policy
from fairlane.service.attempt_named import unknown_task
from fairlane.store.base import Reading

if TYPE_CHECKING:
    from fairlane.model.documents.reports import WhyAnswer

#: How many tasks of each lane are read: of all lanes, and of its own project's.
WINDOW_ALL = 16
WINDOW_OWN = 128
#: How many times as many are read of a lane that did not suffice to know a place.
WINDOW_GROWS = 8
#: How many tasks are read that wait for what could end.
FOLLOWERS_MAX = 500


def why(context: Context, task: str) -> WhyAnswer:
    """Why a task does not start, and what would start it."""
    return why_with_kind(context, task)[0]


def why_with_kind(context: Context, task: str) -> tuple[WhyAnswer, str]:
    """The same, with the task's kind, by which a text names its score."""
    with context.store.read() as reading:
        subject = reading.task(task)
        if subject is None:
            raise unknown_task(task)
        if subject.status is Status.QUEUED:
            policy, now = context.policy_for_reading(reading), context.now()
            reasons = _queued(context, reading, policy, now, subject)
        else:
            reasons = Why(task, subject.status, _verdict(context, reading, subject))
        return reasons.document(), subject.kind


def _queued(context: Context, reading: Reading, policy: Policy, now: Instant, task: Task) -> Why:
    subject = _waiting(reading, [task], now)[0]
    planned = look_and_plan(context, reading, policy, now)
    others = tuple(other for other in planned.snapshot.waiting if other.entry.task != task.id)
    snapshot = replace(planned.snapshot, waiting=others)
    placed = reading.placed(task.id)
    waits = placed is not None and bool(placed.wait)
    near = _widened(snapshot, reading, policy, lambda key: WINDOW_OWN * (key == task.lane))
    if waits or found(near, task.id) is not None:  # changes may bring it to its start
        near = _widened(near, reading, policy, lambda key: _window(key, task.project))
    others = (*others, *_followers(reading, policy, now, near, task))
    near = replace(near, waiting=others)
    if waits and _fits(near, subject, policy):
        near = replace(near, waiting=(*others, subject))
    answer = explain(near, policy, now, subject)
    position, ahead, short = answer.position, answer.ahead, answer.short_of
    while short:
        before = near.lanes
        near = _widened(near, reading, policy, _further(near, short))
        if near.lanes == before:  # the store has no more than was read
            break
        position, ahead, short = place_of(Round(near, policy, now), subject)
    return replace(answer, position=position, ahead=ahead)


def _further(near: Snapshot, short: frozenset[LaneKey]) -> Callable[[LaneKey], int]:
    """More of some lanes, as far as places are counted."""
    read = {lane.key: len(lane.by_ready) for lane in near.lanes if lane.key in short}
    return lambda key: min(read.get(key, 0) * WINDOW_GROWS, PLACES_MAX + 1)


def _window(key: LaneKey, project: str) -> int:
    return WINDOW_OWN if key.project == project else WINDOW_ALL


def _waiting(reading: Reading, tasks: Sequence[Task], now: Instant) -> list[Waiting]:
    """Queued tasks with what they wait for; one that was never ready would be so from now on."""
    named = {name for task in tasks for name in (*task.needs, task.parent or "") if name}
    statuses = reading.statuses(named) if named else {}
    rows = [task if task.ready_since is not None else ready_at(task, now) for task in tasks]
    return [waits_of(task, statuses) or Waiting(task.lane, task.entry) for task in rows]


def _followers(
    reading: Reading, policy: Policy, now: Instant, near: Snapshot, task: Task
) -> list[Waiting]:
    """Who would want a slot, too, if what is in flight or what the task needs were done."""
    known = {other.entry.task for other in near.waiting} | {task.id}
    known |= {row.task for lane in near.lanes for row in (*lane.by_ready, *lane.by_created)}
    ending = (*(other.task for other in near.in_flight), *task.needs, task.parent or "")
    names = dict.fromkeys(name for end in ending if end for name in reading.dependents(end))
    tasks = reading.tasks([name for name in names if name not in known][:FOLLOWERS_MAX])
    followers = _waiting(reading, list(tasks.values()), now)
    return [other for other in followers if _fits(near, other, policy)]


def _widened(
    snapshot: Snapshot, reading: Reading, policy: Policy, window: Callable[[LaneKey], int]
) -> Snapshot:
    """With so much of each lane, where less was read."""
    age_from = policy.score.age_from

    def widen(lane: Lane) -> Lane:
        wanted = window(lane.key)
        if len(lane.in_order(age_from)) >= min(wanted, lane.count):
            return lane
        return next(iter(reading.lanes(age_from, wanted, [lane.key])), lane)

    return replace(snapshot, lanes=tuple(widen(lane) for lane in snapshot.lanes))


def _fits(snapshot: Snapshot, subject: Waiting, policy: Policy) -> bool:
    """Whether its place in its lane would be known: no unread task may stand before it."""
    for lane in snapshot.lanes:
        if lane.key == subject.lane and lane.count > len(lane.by_ready):
            last, entry = lane.by_ready[-1], subject.entry
            if policy.score.age_from == "created":
                return (entry.created_at, entry.seq) < (last.created_at, last.seq)
            return (entry.ready_since, entry.seq) < (last.ready_since, last.seq)
    return True


def _verdict(context: Context, reading: Reading, task: Task) -> str:
    if task.status.in_flight:
        on = f" on {task.lease.worker}" if task.lease and task.lease.worker else ""
        stopping = f", being stopped ({task.stop_requested})" if task.stop_requested else ""
        return f"{task.status}{on}{stopping}"
    if task.status is Status.PARKED:
        return f"parked: {task.reason}; {_way_back(context, reading, task)}"
    if task.status is Status.CANCELED and task.reason not in ("", "canceled"):
        return f"canceled: {task.reason}"
    return str(task.status)


def _way_back(context: Context, reading: Reading, task: Task) -> str:
    """How a parked task returns: a person retries it, or the policy does so once."""
    by_person = f"`fairlane retry {task.id}` puts it back"
    opens_at = half_open_at(task, context.policy_for_reading(reading))
    if opens_at is None:
        return by_person
    due = (
        f"at {show_instant(opens_at)} by itself"
        if opens_at > context.now()
        else "with the next round"
    )
    return f"it is tried once more {due}, {by_person} now"
