"""Why, out of the store: the same explanation, with as much of the queue as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairlane.lifecycle.retry import half_open_at
from fairlane.model.errors import NotFound
from fairlane.model.instant import Instant, show_instant
from fairlane.model.lane import Lane
from fairlane.model.snapshot import Snapshot, Waiting, waits_of
from fairlane.model.task import Status, Task
from fairlane.planner.why import PLACES_MAX, Why, explain, place_of
from fairlane.policy.policy import Policy
from fairlane.service.desk import Desk
from fairlane.service.journal import ready_at
from fairlane.service.looking import look_and_plan
from fairlane.service.plans import why_document
from fairlane.store.base import Reading

#: How many tasks of each lane are read: of all lanes, and of its own project's.
WINDOW_ALL = 16
WINDOW_OWN = 128
#: How many tasks are read that wait for what could end.
FOLLOWERS_MAX = 500


def why(desk: Desk, task_id: str) -> dict[str, Any]:
    """Why this task does not run, or that it does."""
    with desk.store.read() as reading:
        task = reading.task(task_id)
        if task is None:
            raise NotFound(f"no task {task_id!r}", "`fairlane list` shows what there is.")
        if task.status is not Status.QUEUED:
            return why_document(Why(task.id, task.status, _verdict(desk, reading, task)))
        policy, now = desk.policy_for_reading(reading), desk.now()
        return why_document(_queued(desk, reading, policy, now, task))


def _queued(desk: Desk, reading: Reading, policy: Policy, now: Instant, task: Task) -> Why:
    subject = _waiting(reading, [task], now)[0]
    seen = look_and_plan(desk, reading, policy, now, window=WINDOW_ALL, ahead=True)
    others = tuple(each for each in seen.snapshot.waiting if each.entry.task != task.id)
    snapshot = replace(seen.snapshot, waiting=others)
    placed = reading.placed(task.id)
    waits = placed is not None and bool(placed.wait)
    near = _widened(snapshot, reading, policy, task.project, WINDOW_OWN)
    others = (*others, *_followers(reading, policy, now, near, task))
    near = replace(near, waiting=others)
    if waits and _fits(near, subject, policy):
        near = replace(near, waiting=(*others, subject))
    found = explain(near, policy, now, subject)
    if waits or found.position is not None or _all_read(near, task.project):
        return found
    far = _widened(near, reading, policy, task.project, PLACES_MAX + 1)
    position, ahead = place_of(far, policy, now, subject)
    return replace(found, position=position, ahead=ahead)


def _waiting(reading: Reading, tasks: Sequence[Task], now: Instant) -> list[Waiting]:
    """Queued tasks with what they wait for; one that was never ready would be so from now on."""
    named = {name for task in tasks for name in (*task.needs, task.parent or "") if name}
    statuses = reading.statuses(named) if named else {}
    found = [task if task.ready_since is not None else ready_at(task, now) for task in tasks]
    return [waits_of(task, statuses) or Waiting(task.lane, task.entry) for task in found]


def _followers(
    reading: Reading, policy: Policy, now: Instant, near: Snapshot, task: Task
) -> list[Waiting]:
    """Who would want a slot, too, if what is in flight or what the task needs were done."""
    known = {each.entry.task for each in near.waiting} | {task.id}
    ending = (*(each.task for each in near.in_flight), *task.needs, task.parent or "")
    names = dict.fromkeys(name for end in ending if end for name in reading.dependents(end))
    tasks = reading.tasks([name for name in names if name not in known][:FOLLOWERS_MAX])
    found = _waiting(reading, list(tasks.values()), now)
    return [each for each in found if _fits(near, each, policy)]


def _widened(
    snapshot: Snapshot, reading: Reading, policy: Policy, project: str, window: int
) -> Snapshot:
    age_from = policy.score.age_from

    def widen(lane: Lane) -> Lane:
        if lane.key.project != project or len(lane.by_ready) >= min(window, lane.count):
            return lane
        return reading.lane(lane.key, age_from, window) or lane

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


def _all_read(snapshot: Snapshot, project: str) -> bool:
    mine = (lane for lane in snapshot.lanes if lane.key.project == project)
    return all(lane.count <= len(lane.by_ready) for lane in mine)


def _verdict(desk: Desk, reading: Reading, task: Task) -> str:
    if task.status.in_flight:
        on = f" on {task.lease.worker}" if task.lease and task.lease.worker else ""
        stopping = f", being stopped ({task.stop_requested})" if task.stop_requested else ""
        return f"{task.status}{on}{stopping}"
    if task.status is Status.PARKED:
        return f"parked: {task.reason}; {_way_back(desk, reading, task)}"
    if task.status is Status.CANCELED and task.reason not in ("", "canceled"):
        return f"canceled: {task.reason}"
    return str(task.status)


def _way_back(desk: Desk, reading: Reading, task: Task) -> str:
    """How a parked task comes back: by a person, and once by itself where the policy says so."""
    by_person = f"`fairlane retry {task.id}` puts it back"
    opens_at = half_open_at(task, desk.policy_for_reading(reading))
    if opens_at is None:
        return by_person
    due = (
        f"at {show_instant(opens_at)} by itself" if opens_at > desk.now() else "with the next round"
    )
    return f"it is tried once more {due}, {by_person} now"
