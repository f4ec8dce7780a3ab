"""Submit: records become tasks that keep every rule (needs, parents, limits), all or none."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Protocol

from fairlane.intake import fields
from fairlane.intake.fields import Records, TaskValues
from fairlane.intake.kinship import cycle_error, find_cycle, relatives, unknown_text
from fairlane.intake.routing import Router
from fairlane.model.errors import FairlaneError, Refused, did_you_mean
from fairlane.model.instant import Instant
from fairlane.model.record import dataclass, field
from fairlane.model.snapshot import waits_of
from fairlane.model.task import Status, Task
from fairlane.planner import readiness
from fairlane.policy.policy import Policy
from fairlane.store.base import Placed, Reading, Writing

_RECORDS_MANY = 1_000
#: Fields that can keep a new task out of its lane.
_WAITS = frozenset({"needs", "parent", "artifacts_missing", "not_before", "source_hold"})


@dataclass(slots=True)
class Batch:
    """What one call amounts to: its ids in order, and the new tasks among them."""

    ids: list[str]
    known: dict[str, Status]  # those that were there before
    new: dict[str, Placed] = field(default_factory=dict)


class Bounds(Protocol):
    """What a caller may add."""

    def refuse_known(self, ids: Sequence[str]) -> None:
        """Refuse ids of tasks that the caller may not ask about."""

    def bound(self, draft: TaskValues, batch: Sequence[str]) -> None:
        """Fill in what follows from the caller; refuse what it may not give."""


@contextmanager
def collector_paused(records: int) -> Iterator[None]:
    """Many objects that all live to the end of the call: looking for garbage finds none."""
    with collector_stopped() if records >= _RECORDS_MANY else nullcontext():
        yield


@contextmanager
def collector_stopped() -> Iterator[None]:
    """The same for any work that makes objects which live to its end."""
    stopped = gc.isenabled()
    if stopped:
        gc.disable()
    try:
        yield
    finally:
        if stopped:
            gc.enable()


def submit(
    tx: Writing,
    router: Router,
    policy: Policy,
    now: Instant,
    records: Records,
    defaults: Mapping[str, object] | None = None,
    chain: bool = False,
    beside: Mapping[str, TaskValues] | None = None,
    bounds: Bounds | None = None,
) -> Batch:
    """Valid tasks for all records; nothing is written but counters.

    `beside`: of some tasks, by id, values that callers cannot give but sources can. `bounds`:
    what the caller may add, if that is limited.
    """
    drafts = _read(records, defaults or {})
    own_ids = [draft["id"] for draft in drafts if "id" in draft]
    known = tx.statuses(own_ids) if own_ids else {}
    _bound(records, drafts, bounds, own_ids, list(known))
    generated = _name(tx, drafts, {*own_ids})
    batch = Batch([draft["id"] for draft in drafts], known)
    if chain:
        _chain(drafts)
    places: dict[str, int] = {}
    for at, draft in enumerate(drafts):
        if draft["id"] not in known:
            places.setdefault(draft["id"], at)
    new: dict[str, TaskValues] = {}
    try:
        for name, at in places.items():
            new[name] = router.complete(drafts[at], name not in generated)
            _follow(new[name], router, policy, by_source=beside is not None)
    except FairlaneError as error:
        raise records.located(error, places[name]) from None
    try:
        statuses = relate(tx, policy, new)
    except Unfit as unfit:
        raise records.located(unfit.error, places[unfit.task]) from None
    if new:
        if beside:
            _put_beside(new, beside, statuses)
        seqs = range(tx.number("seq", len(new)), 1 << 62)
        for (name, values), seq in zip(new.items(), seqs, strict=False):
            batch.new[name] = _placed(values, seq, statuses, policy, now)
    return batch


def _put_beside(
    new: dict[str, TaskValues], beside: Mapping[str, TaskValues], statuses: dict[str, Status]
) -> None:
    """Add what sources say; others may need what one of them has parked."""
    for name, values in beside.items():
        if name in new:
            new[name].update(values)
            if "status" in values:
                statuses[name] = values["status"]


def _read(records: Records, defaults: Mapping[str, object]) -> list[TaskValues]:
    """The typed values of every record; `defaults` fill absent fields."""
    common = fields.read(defaults)
    read, drafts = fields.read, []
    try:
        for row in records.rows:
            drafts.append(common | read(row) if common else read(row))  # noqa: PERF401
    except FairlaneError as error:
        raise records.located(error, len(drafts)) from None
    return drafts


def _bound(
    records: Records,
    drafts: Sequence[TaskValues],
    bounds: Bounds | None,
    ids: Sequence[str],
    known: Sequence[str],
) -> None:
    """Keep to what the caller may add, if that is limited."""
    if bounds is None:
        return
    bounds.refuse_known(known)
    for at, draft in enumerate(drafts):
        try:
            bounds.bound(draft, ids)
        except FairlaneError as error:
            raise records.located(error, at) from None


def _follow(values: TaskValues, router: Router, policy: Policy, by_source: bool) -> None:
    """What a task starts from, and whether its prompt tells of that; a source may add needs later.

    Whether its branch can be is checked, but not for a source: nobody is there to correct it.
    """
    if not by_source:
        router.check_branch(values)
    project = router.project(values["project"])
    values.setdefault("carry", project.carry or policy.carry)
    values.setdefault("context", project.context or policy.context)


def _name(tx: Writing, drafts: Sequence[TaskValues], own_ids: set[str]) -> set[str]:
    """Ids for those that have none: t1, t2, …, never one that exists."""
    nameless = [draft for draft in reversed(drafts) if "id" not in draft]
    generated: set[str] = set()
    while nameless:
        first = tx.number("task", len(nameless))
        names = [f"t{number}" for number in range(first, first + len(nameless))]
        taken = tx.statuses(names).keys() | own_ids
        free = [name for name in names if name not in taken]
        for name in free:
            nameless.pop()["id"] = name
        generated.update(free)
    return generated


def _chain(drafts: Sequence[TaskValues]) -> None:
    """Each needs the one before."""
    for before, draft in pairwise(drafts):
        needs = draft.get("needs", ())
        if before["id"] not in needs:
            draft["needs"] = (*needs, before["id"])


def _placed(
    values: TaskValues, seq: int, statuses: dict[str, Status], policy: Policy, now: Instant
) -> Placed:
    """A new task: ready in its lane since it was made, waiting with a code, or parked."""
    values["seq"] = seq
    since = values["created_at"] = min(values.get("created_at", now), now)
    if values.get("status") is Status.PARKED:
        return Placed(fields.new_task(values | {"parked_at": now}))
    if _WAITS.isdisjoint(values):
        values["ready_since"] = since
        return Placed(fields.new_task(values))
    task = fields.new_task(values)
    code = waits_for(task, statuses, policy, now)
    if not code:
        since = max(since, task.not_before or since)
        return Placed(fields.new_task(values | {"ready_since": since}))
    not_before = task.not_before
    return Placed(task, code, not_before if not_before and not_before > now else None)


def waits_for(task: Task, statuses: dict[str, Status], policy: Policy, now: Instant) -> str:
    """The code of what a queued task waits for first, if it waits."""
    waiting = waits_of(task, statuses)
    hold = next(readiness.waits(waiting, policy, now), None) if waiting else None
    return hold.code if hold else ""


#: New tasks by id, with their values.
Drafts = Mapping[str, TaskValues]


class Unfit(Exception):
    """A refusal, and the new task that it is about."""

    def __init__(self, task: str, error: FairlaneError) -> None:
        super().__init__(error.message)
        self.task, self.error = task, error


def relate(reading: Reading, policy: Policy, drafts: Drafts) -> dict[str, Status]:
    """Check what new tasks name, and give them their depth; the statuses of all they name."""
    kin = {name: draft for name, draft in drafts.items() if "needs" in draft or "parent" in draft}
    if not kin:
        return {}
    named = {name for draft in kin.values() for name in relatives(draft)}
    statuses = reading.statuses(named - drafts.keys())
    for task, draft in kin.items():
        for name in relatives(draft):
            if name not in statuses and name not in drafts:
                raise Unfit(task, _missing(task, name, drafts))
    around = find_cycle(kin)  # no task waits for itself; only new ones can
    if around:
        raise Unfit(around[-1], cycle_error(around))
    parents = {draft["parent"] for draft in kin.values() if "parent" in draft}
    if parents:
        known = reading.tasks(parents - drafts.keys())
        _set_depths(kin, drafts, known)
        _check_limits(reading, policy, drafts, known)
    return statuses | {name: Status.QUEUED for name in named if name in drafts}


def _missing(task: str, named: str, drafts: Drafts) -> FairlaneError:
    near = did_you_mean(named, drafts)
    hint = near if near.startswith("Did") else "Add it first, or take it out."
    return Refused(unknown_text(task, named, drafts[task]), hint, code="unknown_task")


def _set_depths(kin: Drafts, drafts: Drafts, known: Mapping[str, Task]) -> None:
    """Depth is the number of ancestors."""
    for task in kin:
        line: list[str] = []
        here = task
        while here in drafts and "depth" not in drafts[here]:
            line.append(here)
            here = drafts[here].get("parent", "")
        depth = -1
        if here in drafts:
            depth = drafts[here]["depth"]
        elif here:
            depth = known[here].depth
        for child in reversed(line):
            depth += 1
            drafts[child]["depth"] = depth


def _check_limits(
    reading: Reading, policy: Policy, drafts: Drafts, known: Mapping[str, Task]
) -> None:
    """Limits of what an attempt may add: number of children, and depth."""
    flying = {name for name, task in known.items() if task.status.in_flight}
    if not flying:
        return
    children: Counter[str] = Counter()
    for task, draft in drafts.items():
        if _top(draft, drafts) not in flying:
            continue
        if draft["depth"] > policy.limits.depth:
            text = f"{task} would be {draft['depth']} deep (limits.depth is {policy.limits.depth})"
            raise Unfit(task, Refused(text, "Add it to an ancestor.", code="limit"))
        parent = draft["parent"]
        if not children[parent] and parent in known:
            children[parent] = reading.children(parent)
        children[parent] += 1
        most = policy.limits.children
        if children[parent] > most:
            text = f"an attempt of {parent} may add {most} children (limits.children)"
            raise Unfit(task, Refused(text, "Let it finish, or raise the limit.", code="limit"))


def _top(draft: TaskValues, drafts: Drafts) -> str:
    """The first ancestor that is not new."""
    parent = draft.get("parent", "")
    while parent in drafts:
        parent = drafts[parent].get("parent", "")
    return str(parent)
