"""Submit: records become tasks that keep every rule, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from fairlane.intake import fields
from fairlane.intake.family import Unfit, relate
from fairlane.intake.records import Records
from fairlane.intake.routing import Router
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import Instant
from fairlane.model.snapshot import waits_of
from fairlane.model.task import Status, Task
from fairlane.planner import readiness
from fairlane.policy.policy import Policy
from fairlane.store.base import Placed, Writing

#: What keeps a new task out of its lane, if anything does.
_WAITS = ("needs", "parent", "artifacts_missing", "not_before", "source_hold")


@dataclass(slots=True)
class Batch:
    """What one call amounts to: its ids in order, and the new tasks among them."""

    ids: list[str]
    known: dict[str, Status]  # those that were there before
    new: dict[str, Placed] = field(default_factory=dict)


def submit(
    tx: Writing,
    router: Router,
    policy: Policy,
    now: Instant,
    records: Records,
    defaults: Mapping[str, Any] | None = None,
    chain: bool = False,
    beside: Mapping[str, Mapping[str, Any]] | None = None,
) -> Batch:
    """Valid tasks for all records; nothing is written but counters.

    `beside`: of some tasks, by id, values that callers cannot give but sources can.
    """
    drafts = _read(records, defaults or {})
    given = [draft["id"] for draft in drafts if "id" in draft]
    known = tx.statuses(given) if given else {}
    generated = _name(tx, drafts, {*given})
    batch = Batch([draft["id"] for draft in drafts], known)
    if chain:
        _chain(drafts)
    places: dict[str, int] = {}
    for at, draft in enumerate(drafts):
        if draft["id"] not in known:
            places.setdefault(draft["id"], at)
    new = _complete(router, records, drafts, places, generated)
    try:
        statuses = relate(tx, policy, new)
    except Unfit as unfit:
        raise located(unfit.error, records.where(places[unfit.task])) from None
    if new:
        seqs = range(tx.number("seq", len(new)), 1 << 62)
        for (name, values), seq in zip(new.items(), seqs, strict=False):
            if beside and name in beside:
                values.update(beside[name])
            batch.new[name] = _placed(values, seq, statuses, policy, now)
    return batch


def located(error: FairlaneError, where: str) -> FairlaneError:
    """The same error, with the record that it is about."""
    return type(error)(where + error.message, error.hint, error.error_code) if where else error


def _read(records: Records, defaults: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The typed values of every record; `defaults` stand where a record says nothing."""
    common = fields.read(defaults)
    read, drafts = fields.read, []
    try:
        for row in records.rows:
            drafts.append(common | read(row) if common else read(row))  # noqa: PERF401
    except FairlaneError as error:
        raise located(error, records.where(len(drafts))) from None
    return drafts


def _name(tx: Writing, drafts: Sequence[dict[str, Any]], given: set[str]) -> set[str]:
    """Ids for those that have none: t1, t2, …, never one that exists."""
    nameless = [draft for draft in reversed(drafts) if "id" not in draft]
    generated: set[str] = set()
    while nameless:
        first = tx.number("task", len(nameless))
        names = [f"t{number}" for number in range(first, first + len(nameless))]
        taken = tx.statuses(names).keys() | given
        free = [name for name in names if name not in taken]
        for name in free:
            nameless.pop()["id"] = name
        generated.update(free)
    return generated


def _chain(drafts: Sequence[dict[str, Any]]) -> None:
    """Each needs the one before."""
    for before, draft in pairwise(drafts):
        needs = draft.get("needs", ())
        if before["id"] not in needs:
            draft["needs"] = (*needs, before["id"])


def _complete(
    router: Router,
    records: Records,
    drafts: Sequence[dict[str, Any]],
    places: Mapping[str, int],
    generated: set[str],
) -> dict[str, dict[str, Any]]:
    at, new = 0, {}
    try:
        for name, at in places.items():
            new[name] = router.complete(drafts[at], name not in generated)
    except FairlaneError as error:
        raise located(error, records.where(at)) from None
    return new


def _placed(
    values: dict[str, Any],
    seq: int,
    statuses: dict[str, Status],
    policy: Policy,
    now: Instant,
) -> Placed:
    """A new task and where it stands: in a lane since now, or waiting for what."""
    values["seq"] = seq
    values["created_at"] = now
    for each in _WAITS:
        if values.get(each):
            break
    else:
        values["ready_since"] = now
        return Placed(fields.new_task(values))
    task = fields.new_task(values)
    code = waits_for(task, statuses, policy, now)
    if not code:
        return Placed(fields.new_task(values | {"ready_since": now}))
    not_before = task.not_before
    return Placed(task, code, not_before if not_before and not_before > now else None)


def waits_for(task: Task, statuses: dict[str, Status], policy: Policy, now: Instant) -> str:
    """The code of what a queued task waits for first, if it waits."""
    waiting = waits_of(task, statuses)
    hold = next(readiness.waits(waiting, policy, now), None) if waiting else None
    return hold.code if hold else ""
